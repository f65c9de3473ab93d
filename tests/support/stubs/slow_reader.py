"""The stub behind a text encoder that takes its time: as long as a test says, in any process.

A prompt `wait PATH` is read when a test opens the FIFO at PATH to write; `broken` cannot be read.
What waits must have been read before it is delivered: the kernel fails where it was not.
"""

import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from stub_model import StubFamily, StubKernel, StubState
from waiting import until

from reverie.models.contract.encoder_cache import CacheKey
from reverie.models.contract.instance import LoadOptions, ModelInstance
from reverie.models.contract.loop import StepBatch, StepResult

LOCATION = f"{Path(__file__).resolve()}:SlowReader"
WAITS = "wait "
BROKEN = "broken"


class Gate:
    """Holds the reading of one prompt up."""

    def __init__(self, folder: Path, name: str = "gate") -> None:
        self.path = folder / name
        os.mkfifo(self.path)
        self._ours: int | None = None

    @property
    def prompt(self) -> str:
        return f"{WAITS}{self.path}"

    def _is_read(self) -> bool:
        try:
            hold = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return False
        if self._ours is not None:  # of a reader that is gone
            os.close(self._ours)
        self._ours = hold
        return True

    async def reached(self) -> None:
        """Wait until the prompt is being read, and hold it there."""
        await until(self._is_read)

    def open(self) -> None:
        """Let it be read."""
        assert self._ours is not None, "it is not being read"
        os.close(self._ours)
        self._ours = None


def _key(prompt: str) -> CacheKey:
    return CacheKey("stub", "text", "stub-1", (prompt,))


class ReadFirstKernel(StubKernel):
    """Fails where a prompt that takes its time would have to be read by a unit."""

    def run_step(self, batch: StepBatch[StubState]) -> Sequence[StepResult[StubState]]:
        for unit in batch.units:
            begins = unit.state.chunk == 0 and unit.state.unit == 0
            prompt = unit.controls.prompt or (unit.state.prompt if begins else "")
            if prompt.startswith(WAITS) and _key(prompt) not in self.instance.encodings:
                raise RuntimeError("the prompt was not read before it was delivered")
        return super().run_step(batch)


class SlowReader(StubFamily):
    """It reads prompts ahead."""

    kernel_class = ReadFirstKernel

    def load(self, options: LoadOptions) -> ModelInstance:
        instance = super().load(options)

        def read(prompt: str, parameters: Mapping[str, float]) -> None:
            if prompt == BROKEN:
                raise ValueError("it cannot be read")
            if prompt.startswith(WAITS):
                with open(prompt.removeprefix(WAITS)) as gate:
                    gate.read()
            instance.encodings.put(_key(prompt), torch.zeros(1))

        instance.prepare_prompt = read
        return instance
