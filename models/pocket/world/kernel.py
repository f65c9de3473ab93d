"""Pocket's world loop: one frame a chunk, one denoise step a unit.

A frame is made by denoise steps: the first takes the controls (a new prompt is encoded just before
it), the last commits. Then the picture is decoded and shown. Then, off the viewer's path, the
context pass writes the frame's cache block. The first frame of a session is the simulator's,
encoded.
"""

from collections.abc import Callable, Sequence

from reverie.models.contract.behavior import Behavior
from reverie.models.contract.controls import Controls
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import (
    BatchKey,
    Durable,
    Idle,
    LoopKernel,
    LoopRequest,
    StepBatch,
    StepResult,
    WorkPlan,
)
from reverie.models.contract.spec import LoopSpec
from reverie.models.pocket.network.networks import PocketNets
from reverie.models.pocket.world.description import described
from reverie.models.pocket.world.durable import durable_state, revived_state
from reverie.models.pocket.world.state import PocketPhase, PocketState
from reverie.models.pocket.world.units import PocketUnits
from reverie.models.services.guidance.policies import CFGPolicy, one_batch


class PocketKernel(LoopKernel[PocketState]):
    """The `world_model` loop of pocket."""

    def __init__(
        self,
        spec: LoopSpec,
        nets: PocketNets,
        instance: ModelInstance,
        policy: Callable[[float], CFGPolicy] = one_batch,
    ) -> None:
        """Bind the loop to its networks; `policy` returns the guidance policy for a scale."""
        self.spec = spec
        self._nets = nets
        self._instance = instance
        self._units = PocketUnits(nets, instance, policy)

    def init_state(self, request: LoopRequest, instance: ModelInstance) -> PocketState:
        """Bind seed, prompt and parameters."""
        return PocketState(
            request.seed,
            request.prompt,
            int(request.parameters["steps"]),
            request.parameters.get("guidance", 1.0),
        )

    def plan_step(self, state: PocketState, controls: Controls) -> WorkPlan | Idle:
        """Name the next unit; the order is that of `PocketPhase`."""
        last = state.step + 1 == state.steps
        match state.phase:
            case PocketPhase.BEGIN:
                # A reset can carry a new prompt; then the world starts under it.
                return self._plan(state, "begin", "text", takes=controls.prompt is not None)
            case PocketPhase.FIRST_FRAME:
                return self._plan(state, "first_frame", "codec", commits=True)
            case PocketPhase.CHUNK if controls.prompt is not None:
                return self._plan(state, "encode_text", "text", takes=True)
            case PocketPhase.CHUNK:
                steps = int(controls.parameters.get("steps", state.steps))
                return self._plan(state, "denoise", "world", takes=True, commits=steps == 1)
            case PocketPhase.DENOISE:
                return self._plan(state, "denoise", "world", commits=last)
            case PocketPhase.DECODE:
                return self._plan(state, "decode", "codec", shows=True)
            case PocketPhase.CONTEXT:
                return self._plan(state, "context", "world", writes=1)

    def run_step(self, batch: StepBatch[PocketState]) -> Sequence[StepResult[PocketState]]:
        """Run the units together."""
        return self._units.run(batch.units)

    def behavior(self, state: PocketState) -> Behavior | None:
        """Return the inputs and the latents of the frame, for training."""
        return described(state, self._nets.vocabulary)

    def durable(self, state: PocketState) -> Durable | None:
        """Return the window's latents, actions and texts, and the counters."""
        return durable_state(state, self.spec.name, self._instance.weights_version)

    def revive(
        self, durable: Durable, request: LoopRequest, instance: ModelInstance
    ) -> PocketState:
        """Restore the window."""
        return revived_state(durable, request.seed, instance.device)

    def _plan(
        self,
        state: PocketState,
        kind: str,
        component: str,
        *,
        takes: bool = False,
        commits: bool = False,
        shows: bool = False,
        writes: int = 0,
    ) -> WorkPlan:
        key = BatchKey.of(
            self._instance,
            self.spec.name,
            kind,
            (len(state.blocks),) if component == "world" else (),
        )
        return WorkPlan(
            kind=kind,
            batch_key=key,
            writes=writes,
            streams=("video",) if shows else (),
            takes_controls=takes,
            commits=commits,
            shows=shows,
        )
