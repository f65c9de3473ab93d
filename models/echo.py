"""Echo: a family without a model. Pushed media comes out unchanged, to try and to measure the path.

Each picture of a clip comes out once, in order; of a camera that is faster than the viewer only the
newest. Sound comes out sample by sample. While sound comes without pictures, the newest picture is
repeated, because pictures pace the sound.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from reverie.models.contract.blocks import BlockId
from reverie.models.contract.controls import Controls, Merge
from reverie.models.contract.instance import LoadOptions, ModelInstance
from reverie.models.contract.loop import (
    AudioOutput,
    BatchKey,
    FrameOutput,
    Idle,
    LoopKernel,
    LoopRequest,
    Output,
    StepBatch,
    StepResult,
    StepUnit,
    WorkPlan,
)
from reverie.models.contract.spec import (
    Capability,
    CapabilityMatrix,
    ComponentSpec,
    InputSpec,
    Lead,
    LoopSpec,
    ModelSpec,
    ProgramSpec,
    StreamKind,
    StreamSpec,
)

VIDEO = "video"
AUDIO = "audio"
SIDE_PX = 256
FRAMES_HZ = 30.0
SAMPLES_HZ = 48_000
CLIP_FRAMES = 8
"""Frames of a clip in one chunk at most."""
SOUND_PIECES = 20
SAMPLES_A_FRAME = round(SAMPLES_HZ / FRAMES_HZ)

LOOP = LoopSpec(
    name="echo",
    components=("nothing",),
    streams=(
        StreamSpec(VIDEO, StreamKind.VIDEO, SIDE_PX, SIDE_PX, FRAMES_HZ),
        StreamSpec(AUDIO, StreamKind.AUDIO, rate_hz=SAMPLES_HZ, channels=2),
    ),
    inputs=(
        InputSpec(
            "camera", StreamKind.VIDEO, Merge.LATEST, 1, SIDE_PX, SIDE_PX, FRAMES_HZ, label="Camera"
        ),
        InputSpec(
            "clip", StreamKind.VIDEO, Merge.FIFO, CLIP_FRAMES, SIDE_PX, SIDE_PX, FRAMES_HZ,
            label="Clip",
        ),
        InputSpec(
            "microphone", StreamKind.AUDIO, Merge.FIFO, SOUND_PIECES, rate_hz=SAMPLES_HZ,
            channels=2, label="Microphone",
        ),
    ),
)  # fmt: skip

ECHO = ModelSpec(
    name="echo",
    title="Echo: puts out the media that a client pushes",
    licence="Apache-2.0",
    components=(ComponentSpec("nothing", "passes media through"),),
    loops=(LOOP,),
    programs=(ProgramSpec("echo", ("echo",), Lead(2)),),
    capabilities=CapabilityMatrix({"echo": frozenset({Capability.REWIND, Capability.FORK})}),
    weights_licence="none, it has no weights",
)


@dataclass(frozen=True, slots=True)
class EchoState:
    """What a session of the echo remembers.

    Attributes:
        chunks: how many were put out.
        picture_HWC: the newest one, which is repeated while there is only sound.
        ahead: samples by which the sound is longer than the pictures; less than a frame's.
    """

    chunks: int = 0
    picture_HWC: NDArray[np.uint8] | None = None
    ahead: int = 0

    @property
    def blocks(self) -> tuple[BlockId, ...]:
        """None: there is no cache."""
        return ()


class EchoKernel(LoopKernel[EchoState]):
    """One unit a chunk: it takes the pushed media, commits and shows it."""

    def __init__(self, spec: LoopSpec, instance: ModelInstance) -> None:
        """Bind the loop."""
        self.spec = spec
        self._key = BatchKey.of(instance, spec.name, "echo")

    def init_state(self, request: LoopRequest, instance: ModelInstance) -> EchoState:
        """Begin with nothing."""
        return EchoState()

    def plan_step(self, state: EchoState, controls: Controls) -> WorkPlan | Idle:
        """Plan the next chunk when a picture has come, or enough sound for one picture."""
        sound = controls.media.get("microphone", ())
        enough = sum(len(piece.data) for piece in sound) >= SAMPLES_A_FRAME
        pictures = any(name in controls.media for name in ("camera", "clip"))
        if not (pictures or enough or any(piece.last for piece in sound)):
            return Idle("nothing was pushed")
        return WorkPlan(
            kind="echo",
            batch_key=self._key,
            streams=(VIDEO, AUDIO),
            takes_controls=True,
            commits=True,
            shows=True,
        )

    def run_step(self, batch: StepBatch[EchoState]) -> Sequence[StepResult[EchoState]]:
        """Put out what each session has pushed."""
        return [self._echoed(unit) for unit in batch.units]

    def _echoed(self, unit: StepUnit[EchoState]) -> StepResult[EchoState]:
        media, state = unit.controls.media, unit.state
        pictures = [piece.data for name in ("camera", "clip") for piece in media.get(name, ())]
        sounds = [piece.data for piece in media.get("microphone", ())]
        ahead = state.ahead + sum(len(sound) for sound in sounds)
        if not pictures:
            repeats = min(max(1, ahead // SAMPLES_A_FRAME), CLIP_FRAMES)
            pictures = [_kept(state)] * repeats
        frames_FHWC = torch.from_numpy(np.stack(pictures))
        outputs: list[Output] = [FrameOutput(VIDEO, frames_FHWC)]
        if sounds:
            outputs.append(AudioOutput(AUDIO, torch.from_numpy(np.concatenate(sounds))))
        after = EchoState(
            state.chunks + 1,
            pictures[-1].astype(np.uint8, copy=False),
            min(max(0, ahead - len(pictures) * SAMPLES_A_FRAME), SAMPLES_A_FRAME),
        )
        return StepResult(after, tuple(outputs))


def _kept(state: EchoState) -> NDArray[np.uint8]:
    if state.picture_HWC is None:
        return np.zeros((SIDE_PX, SIDE_PX, 3), np.uint8)
    return state.picture_HWC


class Echo:
    """The family behind the entry point `echo`."""

    spec = ECHO

    def load(self, options: LoadOptions) -> ModelInstance:
        """Return an instance without weights, on the CPU."""
        return ModelInstance("echo-0", ECHO, torch.device("cpu"), torch.float32, "1")

    def kernel(self, loop: str, instance: ModelInstance) -> EchoKernel:
        """Return the kernel of one of the loops."""
        return EchoKernel(ECHO.loop(loop), instance)
