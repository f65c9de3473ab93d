"""The stub on a device that fails, or whose memory runs out; `place(name)` is the location of one.

`Failing`: the unit that `fault` names meets an illegal access, once in all workers, and from then
on every call of that process fails, as on CUDA. So does a prompt of `ILLEGAL`.

`Cramped`: a forward pass of more than two units asks for more memory than any machine has; so do a
session with `HUGE_SEED` and a prompt of `HUGE`, always.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from stub_model import Fault, StubFamily, StubKernel, StubState

from reverie.models.contract.controls import Controls
from reverie.models.contract.instance import LoadOptions, ModelInstance
from reverie.models.contract.loop import (
    Durable,
    LoopRequest,
    StepBatch,
    StepResult,
    StepUnit,
    WorkPlan,
)

ILLEGAL = "an illegal access"
HUGE = "a huge prompt"
HUGE_SEED = 77
ROOM = 2
"""Units that fit at once."""
MARK_VARIABLE = "FAILING_DEVICE_MARK"
"""Names a file that is there once the device has failed where it is to fail only once."""


def place(name: str) -> str:
    """Return the location of a family of this file."""
    return f"{Path(__file__).resolve()}:{name}"


def use_the_device() -> None:
    """Do anything at all with it."""
    if _broken:
        raise torch.AcceleratorError("CUDA error: an illegal memory access was encountered")


def break_the_device() -> None:
    """Let this call and all after it fail."""
    _broken.append(True)
    use_the_device()


def break_once() -> None:
    """Likewise, but in the first process alone."""
    mark = Path(os.environ[MARK_VARIABLE])
    if not mark.exists():
        mark.touch()
        break_the_device()


def ask_for_too_much() -> None:
    """Ask for more memory than a machine can have."""
    torch.empty(2**52)


_broken: list[bool] = []


class DeviceKernel(StubKernel):
    """Uses the device in everything it does."""

    def init_state(self, request: LoopRequest, instance: ModelInstance) -> StubState:
        use_the_device()
        return super().init_state(request, instance)

    def plan_step(self, state: StubState, controls: Controls) -> WorkPlan:
        use_the_device()
        return super().plan_step(state, controls)

    def run_step(self, batch: StepBatch[StubState]) -> Sequence[StepResult[StubState]]:
        use_the_device()
        return super().run_step(batch)

    def durable(self, state: StubState) -> Durable | None:
        use_the_device()
        return super().durable(state)

    def _claim_fault(self, state: StubState) -> Fault:
        fault = super()._claim_fault(state)
        if fault is Fault.RAISE:
            break_the_device()
        return fault


class Failing(StubFamily):
    """Its device fails when it is told to."""

    kernel_class = DeviceKernel

    def load(self, options: LoadOptions) -> ModelInstance:
        use_the_device()
        instance = super().load(options)

        def read(prompt: str, parameters: Mapping[str, float]) -> None:
            use_the_device()
            if prompt == ILLEGAL:
                break_once()

        instance.prepare_prompt = read
        return instance


class FailsAtFirst(StubFamily):
    """The first process that loads it loses its device, and no other."""

    def load(self, options: LoadOptions) -> ModelInstance:
        try:
            break_once()
        except RuntimeError as error:
            raise ValueError("the weights could not be read") from error
        return super().load(options)


class AlwaysFails(StubFamily):
    """Every process that loads it loses its device."""

    def load(self, options: LoadOptions) -> ModelInstance:
        break_the_device()
        return super().load(options)


class WarmUpKernel(DeviceKernel):
    """Loses the device while it decodes."""

    def _run(self, unit: StepUnit[StubState]) -> StepResult[StubState]:
        if unit.plan.kind == "decode":
            break_once()
        return super()._run(unit)


class LosesDeviceInWarmUp(Failing):
    """The first process loses its device in the warm-up."""

    kernel_class = WarmUpKernel


class CrampedKernel(StubKernel):
    """Has room for two units at once.

    Attributes:
        tried: units of each forward pass that was tried.
    """

    tried: list[int]

    def init_state(self, request: LoopRequest, instance: ModelInstance) -> StubState:
        if request.seed == HUGE_SEED:
            np.empty(2**52)
        return super().init_state(request, instance)

    def run_step(self, batch: StepBatch[StubState]) -> Sequence[StepResult[StubState]]:
        self.tried = [*getattr(self, "tried", []), len(batch.units)]
        if len(batch.units) > ROOM:
            ask_for_too_much()
        return super().run_step(batch)

    def _claim_fault(self, state: StubState) -> Fault:
        fault = super()._claim_fault(state)
        if fault is Fault.RAISE:
            ask_for_too_much()
        return fault


class Cramped(StubFamily):
    """Its device has little memory."""

    kernel_class = CrampedKernel

    def load(self, options: LoadOptions) -> ModelInstance:
        instance = super().load(options)

        def read(prompt: str, parameters: Mapping[str, float]) -> None:
            if prompt == HUGE:
                ask_for_too_much()

        instance.prepare_prompt = read
        return instance


class TooLarge(StubFamily):
    """It does not fit any machine."""

    def load(self, options: LoadOptions) -> ModelInstance:
        ask_for_too_much()
        return super().load(options)


class TooLargeToDecodeKernel(StubKernel):
    """It cannot decode a picture."""

    def _decode(self, state: StubState, fault: Fault) -> StepResult[StubState]:
        ask_for_too_much()
        return super()._decode(state, fault)


class TooLargeToDecode(StubFamily):
    """It loads, and its decoder then finds no memory."""

    kernel_class = TooLargeToDecodeKernel
