"""Any kernel, made to fail on demand."""

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

import torch

from reverie.models.contract.controls import Controls
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import (
    Durable,
    Idle,
    LoopKernel,
    LoopRequest,
    StepBatch,
    StepResult,
    WorkPlan,
)


class KernelFault(Enum):
    """What goes wrong with a step that was otherwise run as it should be."""

    RAISES = "step_raised"
    NOT_FINITE = "non_finite"


class FaultyKernel(LoopKernel[Any]):
    """Passes everything on to a kernel, and spoils as many of the next batches as it is told to."""

    def __init__(self, inner: LoopKernel[Any]) -> None:
        self.spec = inner.spec
        self._inner = inner
        self._fault = KernelFault.RAISES
        self._times = 0

    def spoil(self, fault: KernelFault, times: int = 1) -> None:
        self._fault, self._times = fault, times

    def init_state(self, request: LoopRequest, instance: ModelInstance) -> Any:
        return self._inner.init_state(request, instance)

    def plan_step(self, state: Any, controls: Controls) -> WorkPlan | Idle:
        return self._inner.plan_step(state, controls)

    def run_step(self, batch: StepBatch[Any]) -> Sequence[StepResult[Any]]:
        # The work is done first: blocks are written, as they would be by a step that fails late.
        results = self._inner.run_step(batch)
        if not self._times:
            return results
        self._times -= 1
        if self._fault is KernelFault.RAISES:
            raise RuntimeError("fault")
        bad = torch.tensor(float("nan"))
        return [replace(result, checks=(*result.checks, bad)) for result in results]

    def durable(self, state: Any) -> Durable | None:
        return self._inner.durable(state)

    def revive(self, durable: Durable, request: LoopRequest, instance: ModelInstance) -> Any:
        return self._inner.revive(durable, request, instance)
