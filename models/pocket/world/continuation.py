"""Pocket goes on from what it is shown: a pushed picture or clip becomes the history.

The pictures go out as the codec sees them, at the world's rate, and then, like any frame that the
world made itself, through the context pass into the window. What the walker did in them is read
from how the land moves; biome and hour that no prompt names, from the colours. Before the first
push the world of the prompt is there, as in `world`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from reverie.models.contract.controls import NO_CONTROLS, Controls, MediaInput
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import (
    Durable,
    FrameOutput,
    Idle,
    LoopRequest,
    StepBatch,
    StepResult,
    StepUnit,
    WorkPlan,
)
from reverie.models.pocket.simulator.biomes import Action
from reverie.models.pocket.simulator.captions import read_caption
from reverie.models.pocket.simulator.walker import FACING_OF
from reverie.models.pocket.world.input_frames import action_between, latents_of, likely_place
from reverie.models.pocket.world.kernel import PocketKernel
from reverie.models.pocket.world.state import PocketPhase, PocketState, WindowFrame

STREAM = "clip"
CLIP_FRAMES = 8
"""Frames of a clip that are taken, and become visible, together at most: others wait for them."""

ENCODE = "encode_clip"
REPLAY = "decode_clip"


@dataclass(frozen=True, slots=True)
class ShownFrames:
    """A pushed picture that is not out yet.

    Attributes:
        begins: it is the first of a clip; the history before it is no more.
    """

    clean_Zhw: Tensor
    action: Action
    begins: bool


@dataclass(frozen=True, slots=True)
class ContinuationState(PocketState):
    """A pocket session that can be shown pictures.

    Attributes:
        shown: those that are not out yet, oldest first.
        clip_goes_on: the newest picture did not end its clip.
    """

    shown: tuple[ShownFrames, ...] = ()
    clip_goes_on: bool = False


class ContinuationKernel(PocketKernel):
    """The `video_continuation` loop of pocket."""

    def init_state(self, request: LoopRequest, instance: ModelInstance) -> PocketState:
        """Bind seed, prompt and parameters; no picture yet."""
        return _continued(PocketKernel.init_state(self, request, instance))

    def plan_step(self, state: PocketState, controls: Controls) -> WorkPlan | Idle:
        """Take pictures at a frame's begin, show them, then go on as the world does."""
        assert isinstance(state, ContinuationState), "the states of this loop"
        if state.shown:
            return self._plan(state, REPLAY, "codec", shows=True)
        if state.phase is PocketPhase.CHUNK and controls.media.get(STREAM):
            return self._plan(state, ENCODE, "codec", takes=True, commits=True)
        if state.phase is PocketPhase.CHUNK and state.clip_goes_on:
            return Idle("more of the clip is to come")
        # A world that begins takes no controls while a picture waits: it would be lost with them.
        return PocketKernel.plan_step(self, state, NO_CONTROLS if controls.media else controls)

    def run_step(self, batch: StepBatch[PocketState]) -> Sequence[StepResult[PocketState]]:
        """Run the units; those of clips one session after another."""
        match batch.units[0].plan.kind:
            case "encode_clip":
                return [self._encode_clip(unit) for unit in batch.units]
            case "decode_clip":
                return [self._decode_clip(unit.state) for unit in batch.units]
        return PocketKernel.run_step(self, batch)

    def revive(
        self, durable: Durable, request: LoopRequest, instance: ModelInstance
    ) -> PocketState:
        """Take the window back; of a clip that was under way the world goes on."""
        return _continued(PocketKernel.revive(self, durable, request, instance))

    @torch.inference_mode()
    def _encode_clip(self, unit: StepUnit[PocketState]) -> StepResult[PocketState]:
        state, pictures = unit.state, unit.controls.media[STREAM]
        assert isinstance(state, ContinuationState), "the states of this loop"
        clean_FZhw = latents_of(pictures, self._nets)
        shown = _shown(state, pictures, clean_FZhw)
        biome, hour = likely_place(pictures[-1].data.astype("uint8", copy=False))
        prompt = state.prompt if unit.controls.prompt is None else unit.controls.prompt
        named = read_caption(prompt)
        told = self._units.told(
            unit,
            prompt,
            biome if named.biome is None else named.biome,
            hour if named.hour is None else named.hour,
        )
        after = replace(told.state, shown=shown, clip_goes_on=not pictures[-1].last)  # type: ignore[call-arg]
        return replace(told, state=after, checks=(clean_FZhw,))

    @torch.inference_mode()
    def _decode_clip(self, state: PocketState) -> StepResult[PocketState]:
        assert isinstance(state, ContinuationState), "the states of this loop"
        latents_FZhw = torch.stack([each.clean_Zhw for each in state.shown])
        frames_FCHW = self._nets.codec.decode(latents_FZhw.to(self._instance.dtype))
        frames_FHWC = frames_FCHW.float().clamp(0, 1).permute(0, 2, 3, 1)
        for each in state.shown:
            state = _lived(state, each)
        keep = self._nets.world.config.window - 1
        dropped = max(0, len(state.window) - keep)
        state = replace(
            state,
            shown=(),
            window=state.window[dropped:],
            blocks=state.blocks[dropped:],
            phase=PocketPhase.CONTEXT,
        )
        return StepResult(state, (FrameOutput("video", frames_FHWC),))


def _continued(state: PocketState) -> ContinuationState:
    if isinstance(state, ContinuationState):
        return state
    return ContinuationState(**{name: getattr(state, name) for name in PocketState.__slots__})


def _shown(
    state: ContinuationState, pictures: Sequence[MediaInput], clean_FZhw: Tensor
) -> tuple[ShownFrames, ...]:
    begins = not state.clip_goes_on
    before_Zhw = None if begins or not state.window else state.window[-1].clean_Zhw
    shown = []
    for picture, clean_Zhw in zip(pictures, clean_FZhw, strict=True):
        action = Action.WAIT
        if before_Zhw is not None and not begins:
            action = action_between(before_Zhw, clean_Zhw)
        shown.append(ShownFrames(clean_Zhw, action, begins))
        before_Zhw, begins = clean_Zhw, picture.last
    return tuple(shown)


def _lived(state: ContinuationState, shown: ShownFrames) -> ContinuationState:
    """Put a picture at the end of the history, or begin one with it."""
    assert state.text_T is not None, "the prompt is read before the first frame"
    window, blocks = ((), ()) if shown.begins else (state.window, state.blocks)
    previous_Zhw = window[-1].clean_Zhw if window else torch.zeros_like(shown.clean_Zhw)
    facing = FACING_OF.get(shown.action, None if shown.begins else state.facing)
    made = WindowFrame(shown.clean_Zhw, previous_Zhw, shown.action, state.text_T, facing)
    return replace(
        state, window=(*window, made), blocks=blocks, frame=state.frame + 1, facing=facing
    )
