"""The simplest driver of a kernel, which the runtime is measured against.

One session, no controls, no checks, no rollback, no process: what remains is the model's own time.
"""

import time
from typing import Any

import torch

from reverie.models.contract.blocks import BlockId, LoopState
from reverie.models.contract.controls import NO_CONTROLS
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import (
    FrameOutput,
    Idle,
    LoopKernel,
    LoopRequest,
    StepBatch,
    StepUnit,
    WorkPlan,
)


class BareLoop:
    """Runs one session of a loop as fast as the model goes."""

    def __init__(
        self, kernel: LoopKernel[Any], instance: ModelInstance, request: LoopRequest
    ) -> None:
        """Bind the first state; `advance` does the work."""
        self._kernel = kernel
        self._instance = instance
        self._state: LoopState = kernel.init_state(request, instance)
        self.frames = 0
        self.units = 0

    def advance(self, chunks: int) -> float:
        """Put out `chunks` more chunks and return the seconds that they took.

        Raises:
            RuntimeError: the kernel waits for a control, which this driver never gives.
        """
        started_s = time.perf_counter()
        with torch.inference_mode():
            while chunks:
                plan = self._kernel.plan_step(self._state, NO_CONTROLS)
                if isinstance(plan, Idle):
                    raise RuntimeError(f"the loop is idle: {plan.reason}")
                self._run(plan)
                chunks -= plan.shows
        return time.perf_counter() - started_s

    def close(self) -> None:
        """Return the blocks."""
        self._release(self._state.blocks)

    def _run(self, plan: WorkPlan) -> None:
        pool = self._instance.blocks
        blocks = pool.reserve(plan.writes) if pool is not None and plan.writes else ()
        unit = StepUnit(plan, self._state, NO_CONTROLS, blocks)
        (result,) = self._kernel.run_step(StepBatch(self._instance, (unit,)))
        kept = set(result.state.blocks)
        self._release(tuple(block for block in (*self._state.blocks, *blocks) if block not in kept))
        self._state = result.state
        self.units += 1
        self.frames += sum(
            len(out.frames_FHWC) for out in result.outputs if isinstance(out, FrameOutput)
        )

    def _release(self, blocks: tuple[BlockId, ...]) -> None:
        if self._instance.blocks is not None:
            self._instance.blocks.release(blocks)
