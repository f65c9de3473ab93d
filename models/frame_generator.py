"""A third party's frame generator as a model family: a class with two methods is enough.

    class Fog:
        name, title, licence = "fog", "A fog that drifts", "MIT"
        width, height, rate_hz = 96, 96, 12.0
        keys = ("left", "right")

        def start(self, seed, prompt): ...              -> the first state
        def frame(self, state, key, prompt): ...        -> (the next state, a frame)

    def family(): return FrameGeneratorFamily(Fog())

Serve it as `path/to/fog.py:family`, or under an entry point of group `reverie.models`. The state
can be anything that can be copied, and may be edited: the adapter passes a copy. `key` is the
one key that acts in the step, or None. A frame is an array [H, W, 3] of uint8, or of floats in
0..1. The prompt is the whole prompt in effect, which may have changed since the last frame.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from reverie.models.contract.blocks import BlockId
from reverie.models.contract.controls import Controls, ControlSpec, Merge
from reverie.models.contract.instance import LoadOptions, ModelInstance
from reverie.models.contract.loop import (
    BatchKey,
    FrameOutput,
    LoopKernel,
    LoopRequest,
    StepBatch,
    StepResult,
    StepUnit,
    WorkPlan,
)
from reverie.models.contract.spec import (
    Capability,
    CapabilityMatrix,
    ComponentSpec,
    LoopSpec,
    ModelSpec,
    ProgramSpec,
    StreamKind,
    StreamSpec,
)

LOOP = "world_model"
STREAM = "video"
CONTROL = "move"
PROMPT_TOKENS = 1024


class FrameGenerator(Protocol):
    """What a third party writes. All attributes are read once, when the family is made."""

    @property
    def name(self) -> str:
        """The name of the model in a deployment."""

    @property
    def width(self) -> int:
        """Pixels; likewise `height`."""

    @property
    def height(self) -> int:
        """Pixels."""

    @property
    def rate_hz(self) -> float:
        """Frames a second."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that it understands; empty for none."""

    def start(self, seed: int, prompt: str) -> Any:
        """Return the state before the first frame. All randomness comes from `seed`."""

    def frame(self, state: Any, key: str | None, prompt: str) -> tuple[Any, NDArray[Any]]:
        """Return the next state and a frame."""


@dataclass(frozen=True, slots=True)
class GeneratorState:
    """The generator's own state and the prompt in effect. Holds no cache blocks."""

    own: Any
    prompt: str
    frames: int = 0

    @property
    def blocks(self) -> tuple[BlockId, ...]:
        """None: a generator keeps no cache."""
        return ()


class GeneratorKernel(LoopKernel[GeneratorState]):
    """One frame a unit, which takes the controls, commits and shows."""

    def __init__(self, generator: FrameGenerator, spec: LoopSpec, instance: ModelInstance) -> None:
        """Bind the generator to its loop."""
        self.spec = spec
        self._generator = generator
        self._key = BatchKey.of(instance, spec.name, "frame")

    def init_state(self, request: LoopRequest, instance: ModelInstance) -> GeneratorState:
        """Have the generator start."""
        return GeneratorState(self._generator.start(request.seed, request.prompt), request.prompt)

    def plan_step(self, state: GeneratorState, controls: Controls) -> WorkPlan:
        """Plan the next frame."""
        return WorkPlan(
            kind="frame",
            batch_key=self._key,
            streams=(STREAM,),
            takes_controls=True,
            commits=True,
            shows=True,
        )

    def run_step(self, batch: StepBatch[GeneratorState]) -> Sequence[StepResult[GeneratorState]]:
        """Make a frame for each session, one after another."""
        return [self._frame(unit) for unit in batch.units]

    def _frame(self, unit: StepUnit[GeneratorState]) -> StepResult[GeneratorState]:
        state, controls = unit.state, unit.controls
        prompt = state.prompt if controls.prompt is None else controls.prompt
        keys = controls.keys.get(CONTROL)
        # A generator may edit what it is given; the state that it came from must stay as it is.
        own, frame = self._generator.frame(
            deepcopy(state.own), keys.acting() if keys else None, prompt
        )
        frames_FHWC = torch.from_numpy(np.ascontiguousarray(frame))[None]
        after = replace(state, own=own, prompt=prompt, frames=state.frames + 1)
        return StepResult(after, outputs=(FrameOutput(STREAM, frames_FHWC),))


class FrameGeneratorFamily:
    """A model family around a frame generator."""

    def __init__(self, generator: FrameGenerator) -> None:
        """Describe `generator`; `title` and `licence` are taken from it where it has them."""
        self._generator = generator
        self.spec = _described(generator)

    def load(self, options: LoadOptions) -> ModelInstance:
        """Return an instance on the CPU; a generator manages its own devices."""
        return ModelInstance(
            name=f"{self.spec.name}-0",
            spec=self.spec,
            device=torch.device("cpu"),
            dtype=torch.float32,
            weights_version=_version(self._generator),
        )

    def kernel(self, loop: str, instance: ModelInstance) -> GeneratorKernel:
        """Return the kernel of the only loop."""
        return GeneratorKernel(self._generator, self.spec.loop(loop), instance)


def _described(generator: FrameGenerator) -> ModelSpec:
    controls = (ControlSpec(CONTROL, Merge.EDGES, tuple(generator.keys), label="Move"),)
    abilities = {
        Capability.TEXT_PROMPT,
        Capability.ACTIONS,
        Capability.REWIND,
        Capability.FORK,
    }
    loop = LoopSpec(
        name=LOOP,
        components=("generator",),
        streams=(
            StreamSpec(
                STREAM, StreamKind.VIDEO, generator.width, generator.height, generator.rate_hz
            ),
        ),
        controls=controls if generator.keys else (),
        prompt_tokens=PROMPT_TOKENS,
    )
    return ModelSpec(
        name=generator.name,
        title=str(getattr(generator, "title", generator.name)),
        licence=str(getattr(generator, "licence", "unknown")),
        components=(ComponentSpec("generator", "everything"),),
        loops=(loop,),
        programs=(ProgramSpec("world", (LOOP,)),),
        capabilities=CapabilityMatrix({LOOP: frozenset(abilities)}),
    )


def _version(generator: FrameGenerator) -> str:
    # Without weights to hash, the code's own name is what can change the output.
    kind = type(generator)
    text = f"{kind.__module__}.{kind.__qualname__}/{getattr(generator, 'version', '')}"
    return blake2b(text.encode(), digest_size=6).hexdigest()
