"""Run every branch of a model once before anybody waits for it.

A short session through the real driver: two chunks, then a new prompt and every control, then an
interrupt, then a revival from the durable state. What fails here fails at load, not in a session.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from reverie.engine.batch import run_batch
from reverie.engine.driver import LoopDriver
from reverie.engine.emissions import (
    Emission,
    FramesOut,
    SamplesOut,
    SnapshotOut,
    StepFailed,
    TextOut,
)
from reverie.engine.inputs import (
    AxisInput,
    ControlId,
    ControlInput,
    KeysInput,
    PromptInput,
    StreamInput,
)
from reverie.engine.options import DriverOptions
from reverie.gpu_pool.errors import WarmUpError
from reverie.models.controls import KeyEdge, MediaInput, Merge
from reverie.models.instance import ModelInstance
from reverie.models.loop import Durable, LoopKernel, LoopRequest
from reverie.models.spec import InputSpec, LoopSpec, StreamKind

_SESSION = "warm-up"
_CONTROL = ControlId("warm-up")
_UNITS = 10_000


class WarmUp:
    """One loop of an instance, run for a few chunks."""

    def __init__(
        self,
        kernel: LoopKernel[Any],
        instance: ModelInstance,
        options: DriverOptions,
        now_us: Callable[[], int],
    ) -> None:
        self._kernel = kernel
        self._instance = instance
        self._options = options
        self._now_us = now_us
        self._durable: Durable | None = None

    def run(self) -> None:
        """Run every branch, and leave nothing behind.

        Raises:
            WarmUpError: a step failed, or nothing came out.
        """
        self._live(self._drive)
        if self._durable is not None:
            self._live(self._chunk, self._durable)

    def _live(
        self, what: Callable[[LoopDriver[Any]], None], durable: Durable | None = None
    ) -> None:
        spec = self._kernel.spec
        defaults = {parameter.name: parameter.default for parameter in spec.parameters}
        request = LoopRequest(_SESSION, seed=0, prompt="", parameters=defaults)
        driver = LoopDriver(self._kernel, self._instance, request, self._options, durable=durable)
        try:
            driver.watched(True)
            what(driver)
        finally:
            driver.close()

    def _drive(self, driver: LoopDriver[Any]) -> None:
        self._chunk(driver)
        self._chunk(driver)
        driver.push(_every_control(self._kernel.spec))
        self._chunk(driver)
        driver.interrupt(0)
        self._chunk(driver)

    def _chunk(self, driver: LoopDriver[Any]) -> None:
        """Run until one more chunk is out, and seen; what only answers media is given some."""
        media = _every_medium(self._kernel.spec)
        for _ in range(_UNITS):
            if driver.ready(self._now_us()) is None:
                self._put_out(driver.take_emissions())
                if media:
                    driver.push(media)
                    media = ()
                    continue
                raise WarmUpError(f"loop {self._kernel.spec.name} puts nothing out")
            run_batch(self._kernel, self._instance, [driver], self._now_us)
            if (chunk := self._put_out(driver.take_emissions())) is not None:
                driver.seen(chunk, self._now_us())
                return
        raise WarmUpError(f"loop {self._kernel.spec.name} puts nothing out in {_UNITS} units")

    def _put_out(self, emissions: list[Emission]) -> int | None:
        chunk = None
        for emission in emissions:
            match emission:
                case StepFailed(message=message):
                    raise WarmUpError(f"loop {self._kernel.spec.name}: {message}")
                case SnapshotOut(durable=durable):
                    self._durable = durable
                case FramesOut() | SamplesOut() | TextOut():
                    chunk = emission.chunk
                case _:
                    pass
        return chunk


def _every_medium(spec: LoopSpec) -> tuple[ControlInput, ...]:
    taken = (each for each in spec.inputs if each.capacity)
    return tuple(StreamInput(_CONTROL, each.name, _blank(each)) for each in taken)


def _blank(spec: InputSpec) -> MediaInput:
    if spec.kind is StreamKind.AUDIO:
        return MediaInput(0, np.zeros((round(spec.rate_hz / 50), spec.channels), np.float32))
    return MediaInput(0, np.zeros((spec.height, spec.width, 3), np.uint8), last=True)


def _every_control(spec: LoopSpec) -> tuple[ControlInput, ...]:
    inputs: list[ControlInput] = [*_every_medium(spec)]
    if spec.prompt_tokens:
        inputs.append(PromptInput(_CONTROL, "a quiet place"))
    for control in spec.controls:
        if control.merge is Merge.EDGES:
            tap = (KeyEdge(control.keys[0], True), KeyEdge(control.keys[0], False))
            inputs.append(KeysInput(_CONTROL, control.name, tap))
        elif control.merge is Merge.SUM:
            inputs.append(AxisInput(_CONTROL, control.name, control.high))
    return tuple(inputs)
