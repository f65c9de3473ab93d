"""Variants of the stub, no good in one way each; `place(name)` is where to load one from."""

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
    """Return one whose steps are busy Python code."""
    return StubFamily(sleep=spin)


def hog(seconds: float) -> None:
    """Hold the interpreter for good, so that no other thread of the process runs again."""
    if seconds:
        sum(range(10**15))


def hog_family() -> StubFamily:
    """Return one whose steps, when they take time, never end and let no other thread run."""
    return StubFamily(sleep=hog)


class SlowToLoad(StubFamily):
    """Its load takes half a minute of busy Python code."""

    def load(self, options: LoadOptions) -> ModelInstance:
        spin(30)
        return super().load(options)


class GatedLoad(StubFamily):
    """Its load waits until the file that `GATE_VARIABLE` names is there."""

    def load(self, options: LoadOptions) -> ModelInstance:
        gate = Path(os.environ[GATE_VARIABLE])
        while not gate.exists():
            time.sleep(0.02)
        return super().load(options)


class WithoutWeights(StubFamily):
    """It cannot be loaded."""

    def load(self, options: LoadOptions) -> ModelInstance:
        raise CheckpointError("there are no weights")


class Cramped(StubFamily):
    """Its device has room for two sessions, however many are asked for."""

    def load(self, options: LoadOptions) -> ModelInstance:
        return replace(super().load(options), room=MemoryBudget(2, 3))


class TooSmall(StubFamily):
    """Its cache pool has not even room for one session."""

    def load(self, options: LoadOptions) -> ModelInstance:
        return replace(super().load(options), blocks=BlockPool(3, (BLOCK_WIDTH,)))


class DiesLoading(StubFamily):
    """It takes its process down while it loads."""

    def load(self, options: LoadOptions) -> ModelInstance:
        os._exit(7)


class FailingKernel(StubKernel):
    """Raises when it takes a prompt, which only a warm-up does without being asked."""

    def init_state(self, request: LoopRequest, instance: ModelInstance) -> StubState:
        state = super().init_state(request, instance)
        faulty = {**state.parameters, "fault": Fault.RAISE, "fault_always": 1, "fault_chunk": 2}
        return StubState(state.session, state.seed, state.prompt, faulty)


class FailsInWarmUp(StubFamily):
    """It loads, but its third chunk fails."""

    def kernel(self, loop: str, instance: ModelInstance) -> StubKernel:
        return FailingKernel(self.spec.loop(loop), instance, self.sleep)


class FussyKernel(StubKernel):
    """Cannot begin a session with an unlucky seed."""

    def init_state(self, request: LoopRequest, instance: ModelInstance) -> StubState:
        if request.seed == UNLUCKY_SEED:
            raise RuntimeError("an unlucky seed")
        return super().init_state(request, instance)


class FussyFamily(StubFamily):
    """It refuses some sessions by raising."""

    def kernel(self, loop: str, instance: ModelInstance) -> StubKernel:
        return FussyKernel(self.spec.loop(loop), instance, self.sleep)


BAD = "bad"
"""What the ids of sessions begin with that the kernels below treat badly."""


class HoardingKernel(StubKernel):
    """Drops no block of a bad session."""

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

    def kernel(self, loop: str, instance: ModelInstance) -> StubKernel:
        return HoardingKernel(self.spec.loop(loop), instance, self.sleep)


class FramelessKernel(StubKernel):
    """Shows a bad session nothing."""

    def run_step(self, batch: StepBatch[StubState]) -> Sequence[StepResult[StubState]]:
        return [
            replace(result, outputs=())
            if unit.state.session.startswith(BAD) and unit.state.chunk
            else result
            for unit, result in zip(batch.units, super().run_step(batch), strict=True)
        ]


class FramelessFamily(StubFamily):
    """Its bad sessions end their second chunk without a frame."""

    def kernel(self, loop: str, instance: ModelInstance) -> StubKernel:
        return FramelessKernel(self.spec.loop(loop), instance, self.sleep)


class MisplanningKernel(StubKernel):
    """Plans with a key that cannot be compared."""

    def plan_step(self, state: StubState, controls: Controls) -> WorkPlan:
        plan = super().plan_step(state, controls)
        if not state.session.startswith(BAD) or not state.chunk:
            return plan
        return replace(plan, batch_key=["denoise"])  # type: ignore[arg-type]


class MisplanningFamily(StubFamily):
    """Its bad sessions plan their second chunk badly."""

    def kernel(self, loop: str, instance: ModelInstance) -> StubKernel:
        return MisplanningKernel(self.spec.loop(loop), instance, self.sleep)


def far_ahead_family() -> StubFamily:
    """Return one that makes three chunks more than were seen."""
    return StubFamily(lead_chunks=3)


def short_family() -> StubFamily:
    """Return one with two frames a chunk, for runs of many chunks."""
    return StubFamily(frames=2)
