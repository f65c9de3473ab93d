"""Echo: no model at all. What is pushed comes out again, for trying paths and measuring them.

Pictures and sound go through loops of their own, so that neither waits for the other. Each picture
comes out once, in its order; of a camera that is faster than the viewer, the newest.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from reverie.models.blocks import BlockId
from reverie.models.controls import Controls, Merge
from reverie.models.instance import LoadOptions, ModelInstance
from reverie.models.loop import (
    AudioOutput,
    BatchKey,
    FrameOutput,
    Idle,
    LoopKernel,
    LoopRequest,
    LoopResult,
    StepBatch,
    StepResult,
    StepUnit,
    WorkPlan,
)
from reverie.models.spec import (
    Capability,
    CapabilityMatrix,
    ComponentSpec,
    InputSpec,
    LoopSpec,
    ModelSpec,
    ProgramSpec,
    StreamKind,
    StreamSpec,
)

SIDE_PX = 256
FRAMES_HZ = 30.0
SAMPLES_HZ = 48_000
CLIP_FRAMES = 8
"""Frames of a clip in one chunk at most."""
SOUND_PIECES = 20

MIRROR = LoopSpec(
    name="mirror",
    components=("nothing",),
    streams=(StreamSpec("video", StreamKind.VIDEO, SIDE_PX, SIDE_PX, FRAMES_HZ),),
    inputs=(
        InputSpec(
            "camera", StreamKind.VIDEO, Merge.LATEST, 1, SIDE_PX, SIDE_PX, FRAMES_HZ, label="Camera"
        ),
        InputSpec(
            "clip", StreamKind.VIDEO, Merge.FIFO, CLIP_FRAMES, SIDE_PX, SIDE_PX, FRAMES_HZ,
            label="Clip",
        ),
    ),
)  # fmt: skip

PARROT = LoopSpec(
    name="parrot",
    components=("nothing",),
    streams=(StreamSpec("audio", StreamKind.AUDIO, rate_hz=SAMPLES_HZ, channels=2),),
    inputs=(
        InputSpec(
            "microphone", StreamKind.AUDIO, Merge.FIFO, SOUND_PIECES, rate_hz=SAMPLES_HZ,
            channels=2, label="Microphone",
        ),
    ),
)  # fmt: skip

ECHO = ModelSpec(
    name="echo",
    title="Echo: what comes in goes out",
    licence="Apache-2.0",
    components=(ComponentSpec("nothing", "hands on what it is given"),),
    loops=(MIRROR, PARROT),
    programs=(
        ProgramSpec("echo", ("mirror",), lead_chunks=2),
        ProgramSpec("sound", ("parrot",), lead_chunks=2),
    ),
    capabilities=CapabilityMatrix(
        {
            "mirror": frozenset({Capability.REWIND}),
            "parrot": frozenset({Capability.REWIND}),
        }
    ),
)


@dataclass(frozen=True, slots=True)
class EchoState:
    """How many chunks there were; nothing else is kept of what went through."""

    chunks: int = 0

    @property
    def blocks(self) -> tuple[BlockId, ...]:
        """None: there is no cache."""
        return ()


class EchoKernel(LoopKernel[EchoState]):
    """One unit a chunk: takes what has come, commits and shows it."""

    def __init__(self, spec: LoopSpec, instance: ModelInstance) -> None:
        """Bind the loop's one output stream."""
        self.spec = spec
        self._stream = spec.streams[0]
        self._key = BatchKey(instance.name, instance.weights_version, spec.name, "echo")

    def init_state(self, request: LoopRequest, instance: ModelInstance) -> EchoState:
        """Begin with nothing."""
        return EchoState()

    def plan_step(self, state: EchoState, controls: Controls) -> WorkPlan | Idle:
        """Plan the next chunk once something has come."""
        if not controls.media:
            return Idle("nothing was pushed")
        return WorkPlan(
            kind="echo",
            batch_key=self._key,
            reads=("nothing",),
            streams=(self._stream.name,),
            takes_controls=True,
            commits=True,
            shows=True,
            cost_key=f"{self.spec.name}.echo",
        )

    def run_step(self, batch: StepBatch[EchoState]) -> Sequence[StepResult[EchoState]]:
        """Hand on what each session has pushed."""
        return [self._handed_on(unit) for unit in batch.units]

    def finalize(self, state: EchoState, instance: ModelInstance) -> LoopResult:
        """Count chunks; there is nothing to free."""
        return LoopResult(state.chunks)

    def _handed_on(self, unit: StepUnit[EchoState]) -> StepResult[EchoState]:
        names = [spec.name for spec in self.spec.inputs]
        pieces = [piece.data for name in names for piece in unit.controls.media.get(name, ())]
        state = replace(unit.state, chunks=unit.state.chunks + 1)
        if self._stream.kind is StreamKind.AUDIO:
            samples_NC = torch.from_numpy(np.concatenate(pieces))
            return StepResult(state, (AudioOutput(self._stream.name, samples_NC),))
        frames_FHWC = torch.from_numpy(np.stack(pieces))
        return StepResult(state, (FrameOutput(self._stream.name, frames_FHWC),))


class Echo:
    """The family behind the entry point `echo`."""

    spec = ECHO

    def load(self, options: LoadOptions) -> ModelInstance:
        """Return an instance of nothing, on the CPU."""
        return ModelInstance("echo-0", ECHO, torch.device("cpu"), torch.float32, "1")

    def kernel(self, loop: str, instance: ModelInstance) -> EchoKernel:
        """Return the kernel of one of the loops."""
        return EchoKernel(ECHO.loop(loop), instance)
