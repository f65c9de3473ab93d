"""A model that is seen and heard: a grey picture that brightens, and a tone with it.

A chunk is one unit. The tone continues from chunk to chunk without a click, so that a listener
can tell whether a sample was lost. Parameters: `hz` is the tone, `level` its amplitude, `short`
cuts so many samples off each chunk's sound, `step_ms` is how long a chunk takes, `fault` 1 puts a
NaN into the sound of chunk `fault_chunk`, once.

Load it as `<path to this file>:SoundingFamily`, also in a spawned worker.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from weightless import OneUnitKernel, WeightlessFamily, WithoutBlocks

from reverie.models.contract.controls import ParameterSpec
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import (
    AudioOutput,
    FrameOutput,
    LoopRequest,
    StepBatch,
    StepResult,
    StepUnit,
)
from reverie.models.contract.spec import (
    CapabilityMatrix,
    ComponentSpec,
    Lead,
    LoopSpec,
    ModelSpec,
    ProgramSpec,
    StreamKind,
    StreamSpec,
)

LOCATION = f"{Path(__file__).resolve()}:SoundingFamily"
"""What a deployment names to serve this model."""

SIZE = 32
FRAMES = 5
RATE_HZ = 25.0

PARAMETERS = (
    ParameterSpec("hz", 1000.0, 1.0, 20_000.0),
    ParameterSpec("level", 0.5, 0.0, 1.0),
    ParameterSpec("short", 0.0, 0.0, 10_000.0, integer=True),
    ParameterSpec("step_ms", 0.0, 0.0, 60_000.0),
    ParameterSpec("fault", 0.0, 0.0, 1.0, integer=True),
    ParameterSpec("fault_chunk", 0.0, 0.0, 1e6, integer=True),
)


@dataclass(frozen=True, slots=True)
class SoundingState(WithoutBlocks):
    """The position of the tone."""

    session: str
    parameters: Mapping[str, float]
    chunk: int = 0
    samples: int = 0


class SoundingKernel(OneUnitKernel[SoundingState]):
    """One unit a chunk."""

    def __init__(self, spec: LoopSpec, instance: ModelInstance) -> None:
        super().__init__(spec, instance)
        self._failed: set[tuple[str, int]] = set()

    def init_state(self, request: LoopRequest, instance: ModelInstance) -> SoundingState:
        defaults = {parameter.name: parameter.default for parameter in PARAMETERS}
        return SoundingState(request.session, {**defaults, **request.parameters})

    def run_step(self, batch: StepBatch[SoundingState]) -> Sequence[StepResult[SoundingState]]:
        time.sleep(max(unit.state.parameters["step_ms"] for unit in batch.units) / 1000)
        return super().run_step(batch)

    def step(self, unit: StepUnit[SoundingState]) -> StepResult[SoundingState]:
        state = unit.state
        state = replace(state, parameters={**state.parameters, **unit.controls.parameters})
        frames = torch.full((FRAMES, SIZE, SIZE, 3), (state.chunk * 8) % 256, dtype=torch.uint8)
        *video, sound = self.spec.streams
        count = round(FRAMES / RATE_HZ * sound.rate_hz) - int(state.parameters["short"])
        tone_NC = self._tone(state, count, sound)
        at = (state.session, state.chunk)
        due = state.parameters["fault"] and state.parameters["fault_chunk"] == state.chunk
        if due and at not in self._failed:
            self._failed.add(at)
            tone_NC[0] = math.nan
        after = replace(state, chunk=state.chunk + 1, samples=state.samples + count)
        seen = tuple(FrameOutput(stream.name, frames) for stream in video)
        return StepResult(after, (*seen, AudioOutput(sound.name, tone_NC)))

    def _tone(self, state: SoundingState, count: int, sound: StreamSpec) -> torch.Tensor:
        times = torch.arange(state.samples, state.samples + count, dtype=torch.float64)
        wave = torch.sin(2 * math.pi * state.parameters["hz"] * times / sound.rate_hz)
        return (state.parameters["level"] * wave).float()[:, None].repeat(1, sound.channels)


@dataclass(frozen=True)
class SoundingFamily(WeightlessFamily):
    """The model as a family.

    Attributes:
        sound_hz: samples a second.
        seen: whether there are pictures.
    """

    sound_hz: float = 24_000.0
    channels: int = 1
    lead_chunks: int = 2
    seen: bool = True

    @property
    def spec(self) -> ModelSpec:
        sound = StreamSpec("sound", StreamKind.AUDIO, rate_hz=self.sound_hz, channels=self.channels)
        video = (StreamSpec("video", StreamKind.VIDEO, SIZE, SIZE, RATE_HZ),) if self.seen else ()
        loop = LoopSpec(
            "world_model",
            ("tone",),
            (*video, sound),
            parameters=PARAMETERS,
            chunk_frames=FRAMES,
        )
        return ModelSpec(
            name="sounding",
            title="A picture and a tone",
            licence="Apache-2.0",
            components=(ComponentSpec("tone", "everything"),),
            loops=(loop,),
            programs=(ProgramSpec("world", ("world_model",), Lead(self.lead_chunks)),),
            capabilities=CapabilityMatrix({"world_model": frozenset()}),
        )

    def kernel(self, loop: str, instance: ModelInstance) -> SoundingKernel:
        return SoundingKernel(self.spec.loop(loop), instance)


def heard_only() -> SoundingFamily:
    """Return a model without pictures: `<path to this file>:heard_only`."""
    return SoundingFamily(seen=False)
