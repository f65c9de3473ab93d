"""Pocket continues a pushed picture or clip: it becomes the session's history.

The viewer sees the pictures as the codec reconstructs them, at the world's rate. Then, like any
generated frame, they go through the context pass into the window. The walker's actions are read
from how the land moves; a biome and an hour that no prompt names are read from the colours. Before
the first push the session shows the world of the prompt, as in `world`.
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
"""At most so many frames of a clip are taken, and become visible, together; the others wait."""

ENCODE = "encode_clip"
DECODE = "decode_clip"


@dataclass(frozen=True, slots=True)
class PendingFrame:
    """A pushed picture that the viewer has not seen yet.

    Attributes:
        begins: whether it is the first of a clip, so that the history before it is dropped.
    """

    clean_Zhw: Tensor
    action: Action
    begins: bool


@dataclass(frozen=True, slots=True)
class ContinuationState(PocketState):
    """A pocket session that takes pictures.

    Attributes:
        pending: pictures that are not shown yet, oldest first.
        clip_continues: whether the newest picture did not end its clip.
    """

    pending: tuple[PendingFrame, ...] = ()
    clip_continues: bool = False


class ContinuationKernel(PocketKernel):
    """The `video_continuation` loop of pocket."""

    def init_state(self, request: LoopRequest, instance: ModelInstance) -> PocketState:
        """Bind seed, prompt and parameters; no picture yet."""
        return _continued(PocketKernel.init_state(self, request, instance))

    def plan_step(self, state: PocketState, controls: Controls) -> WorkPlan | Idle:
        """Take pictures where a frame begins, show them, then continue as the world loop does."""
        assert isinstance(state, ContinuationState), "the states of this loop"
        if state.pending:
            return self._plan(state, DECODE, "codec", shows=True)
        if state.phase is PocketPhase.CHUNK and controls.media.get(STREAM):
            return self._plan(state, ENCODE, "codec", takes=True, commits=True)
        if state.phase is PocketPhase.CHUNK and state.clip_continues:
            return Idle("waiting for the rest of the clip")
        # A world that begins takes no controls while a picture waits: the picture would be lost.
        return PocketKernel.plan_step(self, state, NO_CONTROLS if controls.media else controls)

    def run_step(self, batch: StepBatch[PocketState]) -> Sequence[StepResult[PocketState]]:
        """Run the units; units of clips run one session after another."""
        match batch.units[0].plan.kind:
            case "encode_clip":
                return [self._encode_clip(unit) for unit in batch.units]
            case "decode_clip":
                return [self._decode_clip(unit.state) for unit in batch.units]
        return PocketKernel.run_step(self, batch)

    def revive(
        self, durable: Durable, request: LoopRequest, instance: ModelInstance
    ) -> PocketState:
        """Restore the window; the world continues from what a clip in progress has shown."""
        return _continued(PocketKernel.revive(self, durable, request, instance))

    @torch.inference_mode()
    def _encode_clip(self, unit: StepUnit[PocketState]) -> StepResult[PocketState]:
        state, pictures = unit.state, unit.controls.media[STREAM]
        assert isinstance(state, ContinuationState), "the states of this loop"
        clean_FZhw = latents_of(pictures, self._nets)
        shown = _pending_frames(state, pictures, clean_FZhw)
        biome, hour = likely_place(pictures[-1].data.astype("uint8", copy=False))
        prompt = state.prompt if unit.controls.prompt is None else unit.controls.prompt
        named = read_caption(prompt)
        told = self._units.with_prompt(
            unit,
            prompt,
            biome if named.biome is None else named.biome,
            hour if named.hour is None else named.hour,
        )
        after = replace(told.state, pending=shown, clip_continues=not pictures[-1].last)  # type: ignore[call-arg]
        return replace(told, state=after, checks=(clean_FZhw,))

    @torch.inference_mode()
    def _decode_clip(self, state: PocketState) -> StepResult[PocketState]:
        assert isinstance(state, ContinuationState), "the states of this loop"
        latents_FZhw = torch.stack([each.clean_Zhw for each in state.pending])
        frames_FCHW = self._nets.codec.decode(latents_FZhw.to(self._instance.dtype))
        frames_FHWC = frames_FCHW.float().clamp(0, 1).permute(0, 2, 3, 1)
        for each in state.pending:
            state = _appended(state, each)
        keep = self._nets.world.config.window - 1
        dropped = max(0, len(state.window) - keep)
        state = replace(
            state,
            pending=(),
            window=state.window[dropped:],
            blocks=state.blocks[dropped:],
            phase=PocketPhase.CONTEXT,
        )
        return StepResult(state, (FrameOutput("video", frames_FHWC),))


def _continued(state: PocketState) -> ContinuationState:
    if isinstance(state, ContinuationState):
        return state
    return ContinuationState(**{name: getattr(state, name) for name in PocketState.__slots__})


def _pending_frames(
    state: ContinuationState, pictures: Sequence[MediaInput], clean_FZhw: Tensor
) -> tuple[PendingFrame, ...]:
    begins = not state.clip_continues
    before_Zhw = None if begins or not state.window else state.window[-1].clean_Zhw
    shown = []
    for picture, clean_Zhw in zip(pictures, clean_FZhw, strict=True):
        action = Action.WAIT
        if before_Zhw is not None and not begins:
            action = action_between(before_Zhw, clean_Zhw)
        shown.append(PendingFrame(clean_Zhw, action, begins))
        before_Zhw, begins = clean_Zhw, picture.last
    return tuple(shown)


def _appended(state: ContinuationState, shown: PendingFrame) -> ContinuationState:
    """Append a picture to the history, or begin a new history with it."""
    assert state.text_T is not None, "the prompt is read before the first frame"
    window, blocks = ((), ()) if shown.begins else (state.window, state.blocks)
    previous_Zhw = window[-1].clean_Zhw if window else torch.zeros_like(shown.clean_Zhw)
    facing = FACING_OF.get(shown.action, None if shown.begins else state.facing)
    made = WindowFrame(shown.clean_Zhw, previous_Zhw, shown.action, state.text_T, facing)
    return replace(
        state, window=(*window, made), blocks=blocks, frame=state.frame + 1, facing=facing
    )
