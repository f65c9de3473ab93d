"""Variants of the stub with one fault each; `place(name)` is the location of one."""

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from stub_model import BLOCK_WIDTH, Fault, StubFamily, StubKernel, StubState

from reverie.models.contract.blocks import BlockPool
from reverie.models.contract.controls import Controls
from reverie.models.contract.errors import CheckpointError
from reverie.models.contract.instance import LoadOptions, MemoryBudget, ModelInstance
from reverie.models.contract.loop import LoopRequest, StepBatch, StepResult, WorkPlan

UNLUCKY_SEED = 13
GATE_VARIABLE = "STUB_MODEL_GATE"


def place(name: str) -> str:
    """Return the location of a family of this file."""
    return f"{Path(__file__).resolve()}:{name}"


def spin(seconds: float) -> None:
    """Compute in Python for `seconds`, holding the interpreter."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))


def busy_family() -> StubFamily:
    """Return a stub whose steps are busy Python code."""
    return StubFamily(sleep=spin)


def hog(seconds: float) -> None:
    """Hold the interpreter for ever, so that no other thread of the process runs."""
    if seconds:
        sum(range(10**15))


def hog_family() -> StubFamily:
    """Return a stub whose steps, with `step_ms`, never end and block all other threads."""
    return StubFamily(sleep=hog)


class SlowToLoad(StubFamily):
    """Its load takes half a minute of busy Python code."""

    def load(self, options: LoadOptions) -> ModelInstance:
        spin(30)
        return super().load(options)


class GatedLoad(StubFamily):
    """Its load waits until the file that `GATE_VARIABLE` names exists."""

    def load(self, options: LoadOptions) -> ModelInstance:
        gate = Path(os.environ[GATE_VARIABLE])
        while not gate.exists():
            time.sleep(0.02)
        return super().load(options)


class WithoutWeights(StubFamily):
    """It cannot be loaded."""

    def load(self, options: LoadOptions) -> ModelInstance:
        raise CheckpointError("there are no weights")


class TwoSessions(StubFamily):
    """Its device has memory for two sessions."""

    def load(self, options: LoadOptions) -> ModelInstance:
        return replace(super().load(options), room=MemoryBudget(2, 3))


class TooSmall(StubFamily):
    """Its cache pool is too small for one session."""

    def load(self, options: LoadOptions) -> ModelInstance:
        return replace(super().load(options), blocks=BlockPool(3, (BLOCK_WIDTH,)))


class DiesLoading(StubFamily):
    """Its process exits while it loads."""

    def load(self, options: LoadOptions) -> ModelInstance:
        os._exit(7)


class FailingKernel(StubKernel):
    """Every session fails in its third chunk."""

    def init_state(self, request: LoopRequest, instance: ModelInstance) -> StubState:
        state = super().init_state(request, instance)
        faulty = {**state.parameters, "fault": Fault.RAISE, "fault_always": 1, "fault_chunk": 2}
        return StubState(state.session, state.seed, state.prompt, faulty)


class FailsInWarmUp(StubFamily):
    """It loads, but the warm-up fails in its third chunk."""

    kernel_class = FailingKernel


class FussyKernel(StubKernel):
    """Raises for a session with an unlucky seed."""

    def init_state(self, request: LoopRequest, instance: ModelInstance) -> StubState:
        if request.seed == UNLUCKY_SEED:
            raise RuntimeError("an unlucky seed")
        return super().init_state(request, instance)


class FussyFamily(StubFamily):
    """It raises for some sessions."""

    kernel_class = FussyKernel


BAD = "bad"
"""The prefix of the ids of sessions for which the kernels below misbehave."""


class HoardingKernel(StubKernel):
    """Keeps all blocks of a bad session."""

    def run_step(self, batch: StepBatch[StubState]) -> Sequence[StepResult[StubState]]:
        results = super().run_step(batch)
        return [
            replace(result, state=replace(result.state, blocks=(*unit.state.blocks, *unit.blocks)))
            if unit.plan.kind == "context" and unit.state.session.startswith(BAD)
            else result
            for unit, result in zip(batch.units, results, strict=True)
        ]


class HoardingFamily(StubFamily):
    """Its bad sessions keep every block that they have ever written."""

    kernel_class = HoardingKernel


class FramelessKernel(StubKernel):
    """Puts out no frame for a bad session."""

    def run_step(self, batch: StepBatch[StubState]) -> Sequence[StepResult[StubState]]:
        return [
            replace(result, outputs=())
            if unit.state.session.startswith(BAD) and unit.state.chunk
            else result
            for unit, result in zip(batch.units, super().run_step(batch), strict=True)
        ]


class FramelessFamily(StubFamily):
    """Its bad sessions end their second chunk without a frame."""

    kernel_class = FramelessKernel


class MisplanningKernel(StubKernel):
    """Plans with a key that cannot be compared."""

    def plan_step(self, state: StubState, controls: Controls) -> WorkPlan:
        plan = super().plan_step(state, controls)
        if not state.session.startswith(BAD) or not state.chunk:
            return plan
        return replace(plan, batch_key=["denoise"])  # type: ignore[arg-type]


class MisplanningFamily(StubFamily):
    """Its bad sessions plan their second chunk badly."""

    kernel_class = MisplanningKernel


def far_ahead_family() -> StubFamily:
    """Return a stub that runs three chunks ahead of the viewer."""
    return StubFamily(lead_chunks=3)


def short_family() -> StubFamily:
    """Return a stub with two frames a chunk, for runs of many chunks."""
    return StubFamily(frames=2)
