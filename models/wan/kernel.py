"""The loop `video_continuation` of causal Wan: a block of latent frames a chunk.

A block is denoise calls (a new prompt is read before one of them); the last one commits. Then its
frames are decoded, one latent frame a unit, and go out; then, off the viewer's path, the context
pass writes the block's keys and values. Nothing noisy ever reaches the cache.
"""

from collections.abc import Mapping, Sequence

from reverie.models.controls import Controls
from reverie.models.instance import ModelInstance
from reverie.models.loop import (
    BatchKey,
    Idle,
    LoopKernel,
    LoopRequest,
    LoopResult,
    StepBatch,
    StepResult,
    WorkPlan,
)
from reverie.models.spec import LoopSpec
from reverie.models.wan.parts import WanParts
from reverie.models.wan.state import OnPrompt, Phase, WanState
from reverie.models.wan.units import Units


class WanKernel(LoopKernel[WanState]):
    """Self-Forcing and LongLive, by their `CausalConfig`."""

    def __init__(self, spec: LoopSpec, parts: WanParts, instance: ModelInstance) -> None:
        self.spec = spec
        self._instance = instance
        self._causal = parts.causal
        self._units = Units(parts, instance)

    def init_state(self, request: LoopRequest, instance: ModelInstance) -> WanState:
        """Bind seed, prompt and parameters."""
        return WanState(request.seed, request.prompt, _on_prompt(request.parameters))

    def plan_step(self, state: WanState, controls: Controls) -> WorkPlan | Idle:
        """Name the next unit; its order is that of `Phase`."""
        heard = controls.prompt is not None and not state.turned
        match state.phase:
            case Phase.BEGIN:
                return self._plan(state, "encode_text", "text", takes=heard)
            case Phase.GIVEN if state.waiting:
                return self._plan(state, "warm_decoder", "vae")
            case Phase.GIVEN:
                return self._plan(state, "context", "transformer", writes=self._due(state))
            case Phase.BLOCK if heard:
                return self._plan(state, "encode_text", "text", takes=True)
            case Phase.BLOCK:
                commits = len(self._units.timesteps) == 1
                return self._plan(
                    state, "denoise", "transformer", takes=not state.turned, commits=commits
                )
            case Phase.DENOISE if heard and self._now(state, controls):
                return self._plan(state, "encode_text", "text", takes=True)
            case Phase.DENOISE:
                commits = state.step + 1 == len(self._units.timesteps)
                return self._plan(state, "denoise", "transformer", commits=commits)
            case Phase.RECACHE:
                writes = len(state.window) - self._units.unmoved(state)
                return self._plan(state, "recache", "transformer", writes=writes)
            case Phase.DECODE:
                return self._plan(state, "decode", "vae", shows=len(state.waiting) == 1)
            case Phase.CONTEXT:
                return self._plan(state, "context", "transformer", writes=len(state.fresh))

    def run_step(self, batch: StepBatch[WanState]) -> Sequence[StepResult[WanState]]:
        """Run the units one after another."""
        return [self._units.run(unit) for unit in batch.units]

    def finalize(self, state: WanState, instance: ModelInstance) -> LoopResult:
        """Say how much there was."""
        return LoopResult(state.frame, f"{state.frame} latent frames under {state.prompt!r}")

    def _due(self, state: WanState) -> int:
        return len(self._units.next_given(state))

    @staticmethod
    def _now(state: WanState, controls: Controls) -> bool:
        return _on_prompt(controls.parameters, state.on_prompt) is not OnPrompt.WAIT

    def _plan(
        self,
        state: WanState,
        kind: str,
        component: str,
        *,
        takes: bool = False,
        commits: bool = False,
        shows: bool = False,
        writes: int = 0,
    ) -> WorkPlan:
        key = BatchKey.of(self._instance, self.spec.name, kind, (len(state.blocks), state.step))
        return WorkPlan(
            kind=kind,
            batch_key=key,
            writes=writes,
            reads=(component,),
            streams=("video",) if shows else (),
            takes_controls=takes,
            commits=commits,
            shows=shows,
            cost_key=kind,
        )


def _on_prompt(parameters: Mapping[str, float], otherwise: OnPrompt = OnPrompt.FINISH) -> OnPrompt:
    return OnPrompt(int(parameters.get("on_prompt", otherwise)))
