"""A model with pictures and sound by loops of their own, whose chunks are of different lengths.

A chunk is one unit, without a cache. Every picture and every sample of a loop encodes how many
chunks it had made: `value_of`.

Load it as `<path to this file>:UnevenFamily`, also in a spawned worker.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from weightless import OneUnitKernel, WeightlessFamily, WithoutBlocks

from reverie.engine.emissions import FramesOut, SamplesOut
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import (
    AudioOutput,
    Durable,
    FrameOutput,
    LoopRequest,
    StepResult,
    StepUnit,
)
from reverie.models.contract.spec import (
    Capability,
    CapabilityMatrix,
    ComponentSpec,
    Lead,
    LoopSpec,
    ModelSpec,
    ProgramSpec,
    StreamKind,
    StreamSpec,
)

LOCATION = f"{Path(__file__).resolve()}:UnevenFamily"
SIZE = 32
RATE_HZ = 10.0
SOUND_HZ = 8000.0


@dataclass(frozen=True, slots=True)
class CountState(WithoutBlocks):
    """How many chunks a loop has made."""

    chunks: int = 0


class UnevenKernel(OneUnitKernel[CountState]):
    """One unit a chunk, of pictures or of sound."""

    def __init__(self, spec: LoopSpec, instance: ModelInstance, frames: int) -> None:
        super().__init__(spec, instance)
        self._frames = frames

    def init_state(self, request: LoopRequest, instance: ModelInstance) -> CountState:
        return CountState()

    def durable(self, state: CountState) -> Durable | None:
        return Durable(self.spec.name, "1", {}, json.dumps(state.chunks))

    def revive(self, durable: Durable, request: LoopRequest, instance: ModelInstance) -> CountState:
        return CountState(json.loads(durable.text))

    def step(self, unit: StepUnit[CountState]) -> StepResult[CountState]:
        value, [stream] = unit.state.chunks % 256, self.spec.streams
        after = replace(unit.state, chunks=unit.state.chunks + 1)
        if stream.kind is StreamKind.AUDIO:
            tone_NC = torch.full((self._frames, 1), value, dtype=torch.int16)
            return StepResult(after, (AudioOutput(stream.name, tone_NC),))
        frames = torch.full((self._frames, SIZE, SIZE, 3), value, dtype=torch.uint8)
        return StepResult(after, (FrameOutput(stream.name, frames),))


def value_of(out: FramesOut | SamplesOut) -> int:
    """Return how many chunks its loop had made before this one."""
    media = out.frames if isinstance(out, FramesOut) else out.samples
    return int(np.asarray(media).flat[0])


@dataclass(frozen=True)
class UnevenFamily(WeightlessFamily):
    """The model as a family.

    Attributes:
        picture_s: how long a chunk of pictures is.
        sound_s: how long a chunk of sound is.
        sound_leads: whether the program names the sound's loop first.
    """

    picture_s: float = 2.0
    sound_s: float = 0.4
    sound_leads: bool = False
    lead_chunks: int = 1

    @property
    def spec(self) -> ModelSpec:
        frames = round(self.picture_s * RATE_HZ)
        video = StreamSpec("video", StreamKind.VIDEO, SIZE, SIZE, RATE_HZ)
        sound = StreamSpec("sound", StreamKind.AUDIO, rate_hz=SOUND_HZ, channels=1)
        loops = (
            LoopSpec("pictures", ("all",), (video,), chunk_frames=frames),
            LoopSpec("sounds", ("all",), (sound,)),
        )
        names = ("sounds", "pictures") if self.sound_leads else ("pictures", "sounds")
        capabilities = frozenset({Capability.REWIND, Capability.FORK, Capability.DURABLE})
        return ModelSpec(
            name="uneven",
            title="Pictures, and sound of another chunk length",
            licence="Apache-2.0",
            components=(ComponentSpec("all", "everything"),),
            loops=loops,
            programs=(ProgramSpec("film", names, Lead(self.lead_chunks)),),
            capabilities=CapabilityMatrix(dict.fromkeys(names, capabilities)),
        )

    def kernel(self, loop: str, instance: ModelInstance) -> UnevenKernel:
        seconds, rate = {
            "pictures": (self.picture_s, RATE_HZ),
            "sounds": (self.sound_s, SOUND_HZ),
        }[loop]
        return UnevenKernel(instance.spec.loop(loop), instance, round(seconds * rate))


def short_pictures() -> UnevenFamily:
    """Return a model whose sound comes in the longer chunks: `<this file>:short_pictures`."""
    return UnevenFamily(picture_s=0.4, sound_s=2.0)
