"""Toy models: a step that takes a fixed time, and then a picture with the time and the key.

A step is shorter than a picture is shown, as it is for a model that keeps its rate, but for those
that are named slow.
"""

import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reverie.bench.time_code import KEY, SIDE_PX, now_units, paint
from reverie.models.contract.spec import Lead
from reverie.models.frame_generator import FrameGeneratorFamily

_TEXTURE = slice(160, 224)
"""The rows that carry neither the time nor the key."""


@dataclass(frozen=True, slots=True)
class Toy:
    """A toy model.

    Attributes:
        rate_hz: pictures a second, as it declares.
        step_ms: time of one step.
        busy: whether its pictures are hard to compress.
        least_chunks: how far it is always ahead of the viewer, at least; a chunk is a picture.
    """

    name: str
    rate_hz: float
    step_ms: float
    busy: bool = False
    least_chunks: int = 1

    @property
    def made_hz(self) -> float:
        """Pictures a second that it can make and may show."""
        return min(self.rate_hz, 1000 / self.step_ms)

    @property
    def frame_ms(self) -> float:
        """How long one of its pictures is shown."""
        return 1000 / self.made_hz

    def step(self, number: int, *, marked: bool) -> NDArray[np.uint8]:
        """Take the time of a step, and return its picture [H, W, 3]."""
        time.sleep(self.step_ms / 1000)
        picture = paint(now_units(), number, marked=marked)
        if self.busy:
            noise = np.random.default_rng(number)
            rows = _TEXTURE.stop - _TEXTURE.start
            picture[_TEXTURE] = noise.integers(0, 256, (rows, SIDE_PX, 1), np.uint8)
        return picture


STEP12 = Toy("step12", 12.0, 50.0)
STEP24 = Toy("step24", 24.0, 25.0)
SLOW24 = Toy("slow24", 24.0, 50.0)
BUSY24 = Toy("busy24", 24.0, 25.0, busy=True)
LONG24 = Toy("long24", 24.0, 25.0, least_chunks=12)
STEP60MS = Toy("step60ms", 30.0, 60.0)

TOYS = {toy.name: toy for toy in (STEP12, STEP24, LONG24, SLOW24, BUSY24, STEP60MS)}


class _Stepping:
    """A toy as a frame generator."""

    title, licence = "A toy with a step of fixed time", "Apache-2.0"
    width = height = SIDE_PX
    keys = (KEY,)

    def __init__(self, toy: Toy) -> None:
        self._toy = toy
        self.name, self.rate_hz = toy.name, toy.rate_hz

    def start(self, seed: int, prompt: str) -> int:
        """Start at picture 0."""
        return 0

    def frame(self, state: int, key: str | None, prompt: str) -> tuple[int, NDArray[np.uint8]]:
        """Make the next picture."""
        return state + 1, self._toy.step(state, marked=key is not None)


class _ToyFamily(FrameGeneratorFamily):
    """The family of a toy, with its lead."""

    def __init__(self, toy: Toy) -> None:
        super().__init__(_Stepping(toy))
        lead = Lead(toy.least_chunks)
        programs = tuple(replace(program, lead=lead) for program in self.spec.programs)
        self.spec = replace(self.spec, programs=programs)


def step12() -> FrameGeneratorFamily:
    """Return the family of `STEP12`, as a worker looks it up."""
    return _ToyFamily(STEP12)


def step24() -> FrameGeneratorFamily:
    """Return the family of `STEP24`."""
    return _ToyFamily(STEP24)


def long24() -> FrameGeneratorFamily:
    """Return the family of `LONG24`."""
    return _ToyFamily(LONG24)


def slow24() -> FrameGeneratorFamily:
    """Return the family of `SLOW24`."""
    return _ToyFamily(SLOW24)


def busy24() -> FrameGeneratorFamily:
    """Return the family of `BUSY24`."""
    return _ToyFamily(BUSY24)


def step60ms() -> FrameGeneratorFamily:
    """Return the family of `STEP60MS`, which declares twice of what it makes."""
    return _ToyFamily(STEP60MS)
