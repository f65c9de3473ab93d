"""The loop `restyle` of causal Wan: repaints the pictures of a camera, block by block.

A block is made from evenly chosen pictures: they are encoded, noised to the level of `strength`,
and denoised under the prompt, with the previous blocks as context. Before the first picture the
loop makes video from the prompt; after it, each block needs new pictures.
"""

from reverie.models.contract.controls import Controls
from reverie.models.contract.loop import Idle, WorkPlan
from reverie.models.wan.controls import hears, on_prompt, pushed, strength
from reverie.models.wan.kernel import WanKernel
from reverie.models.wan.state import OnPrompt, WanState
from reverie.models.wan.window import block_at


class WanRestyleKernel(WanKernel):
    """Video to video, with partial noise."""

    encoding = "encode_camera"

    def _plan_chunk(self, state: WanState, controls: Controls) -> WorkPlan | Idle:
        if state.source:  # the block restarts
            return self._plan_denoise(state, takes_controls=not state.turned)
        if hears(state, controls, self._adapters):
            return self._plan_turn(state, controls)
        come = state.pictures or (not state.turned and pushed(controls))
        changed = state.turned or bool(controls.parameters)
        if come or (state.newest is not None and changed):
            first = 0 if state.encoder is None else state.frame
            commits = block_at(first, self._causal) == 1 and self._keeps(state, controls)
            return self._plan_encode(state, takes_controls=not state.turned, commits=commits)
        if state.newest is not None:
            return Idle("no new picture has come")
        return self._plan_denoise(state, takes_controls=not state.turned)

    def _plan_within(self, state: WanState, controls: Controls) -> WorkPlan:
        # Pictures that come with the prompt are for the next block.
        now = on_prompt(state, controls) is not OnPrompt.WAIT
        if now and hears(state, controls, self._adapters):
            return self._plan_turn(state, controls)
        return self._plan_denoise(state)

    def _plan_rest(self, state: WanState) -> WorkPlan:
        last = len(state.source) + 1 == block_at(state.frame, self._causal)
        return self._plan_encode(state, commits=last and self._keeps(state, Controls()))

    def _keeps(self, state: WanState, controls: Controls) -> bool:
        """Tell whether pictures stay unchanged, because the strength leaves no denoise call."""
        value = state.strength if state.turned else strength(state, controls)
        return not self._units.frames.repainting(value)
