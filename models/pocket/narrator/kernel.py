"""The narrator's loop, `ar_decode`: it describes in words what the world's loop has made.

An utterance is: a look (one pass over the slots; takes the turns), the prefill (a topic or a
question is read, and the first token chosen), then one token a unit. A look that finds nothing new
ends without a word. Turns are answered first, in order.
"""

from collections.abc import Sequence

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
from reverie.models.pocket.narration.vocabulary import END
from reverie.models.pocket.narrator.durable import durable_narrator, revived_narrator
from reverie.models.pocket.narrator.state import NarratorActivity, NarratorState, without_utterance
from reverie.models.pocket.narrator.topic_choice import should_look
from reverie.models.pocket.narrator.units import NarratorUnits, with_controls, world_state_of
from reverie.models.pocket.network.networks import PocketNets


class NarratorKernel(LoopKernel[NarratorState]):
    """The `ar_decode` loop of pocket."""

    def __init__(self, spec: LoopSpec, nets: PocketNets, instance: ModelInstance) -> None:
        self.spec = spec
        self._instance = instance
        self._units = NarratorUnits(nets, instance)

    def init_state(self, request: LoopRequest, instance: ModelInstance) -> NarratorState:
        """Start silent."""
        return NarratorState(narrate=bool(request.parameters.get("narrate", 1)))

    def plan_step(self, state: NarratorState, controls: Controls) -> WorkPlan | Idle:
        """Name the next unit."""
        if state.activity is NarratorActivity.OPENING:
            return self._plan(state, "prefill", (len(state.opening),))
        if state.activity is NarratorActivity.SPEAKING:
            last = state.line[-1] == END
            return self._plan(state, "end" if last else "decode_token", shows=last, speaks=True)
        world = world_state_of(controls)
        if world is None or not world.blocks:
            return Idle("waiting for the first frame")
        # A parameter acts, and has its receipt, with a look.
        if not controls.parameters and not should_look(with_controls(state, controls), world.frame):
            return Idle("waiting for a change or a question")
        return self._plan(state, "look", (len(world.blocks),), takes=True)

    def run_step(self, batch: StepBatch[NarratorState]) -> Sequence[StepResult[NarratorState]]:
        """Run the units together."""
        return self._units.run(batch.units)

    def cancel(self, state: NarratorState) -> NarratorState:
        """Drop the utterance in progress; the turn that it answers ends."""
        return without_utterance(state)

    def durable(self, state: NarratorState) -> Durable | None:
        """Return what was said, and whether to narrate."""
        return durable_narrator(state, self.spec.name, self._instance.weights_version)

    def revive(
        self, durable: Durable, request: LoopRequest, instance: ModelInstance
    ) -> NarratorState:
        """Continue to watch."""
        return revived_narrator(durable)

    def _plan(
        self,
        state: NarratorState,
        kind: str,
        shape: tuple[int, ...] = (),
        *,
        takes: bool = False,
        shows: bool = False,
        speaks: bool = False,
    ) -> WorkPlan:
        if state.past is not None and state.said is not None:
            shape = (state.past.past.frames, state.said.tokens, *shape)
        key = BatchKey.of(self._instance, self.spec.name, kind, shape)
        return WorkPlan(
            kind=kind,
            batch_key=key,
            streams=("narration",) if speaks else (),
            takes_controls=takes,
            commits=takes,
            shows=shows,
        )
