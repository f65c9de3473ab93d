"""Running one batch: begin every unit, run the kernel once, complete every unit."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from reverie.engine.driver import LoopDriver
from reverie.engine.scheduler import BatchLimit
from reverie.models.contract.errors import DeviceMemoryError
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import LoopKernel, StepBatch, StepResult, StepUnit
from reverie.models.services.device_errors import classify, free_cached, retry_out_of_memory

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BatchUnit:
    """A unit and its driver."""

    driver: LoopDriver[Any]
    unit: StepUnit[Any]


def run_batch(
    kernel: LoopKernel[Any],
    instance: ModelInstance,
    drivers: Sequence[LoopDriver[Any]],
    now_us: Callable[[], int],
    limit: BatchLimit | None = None,
) -> None:
    """Run the units that `ready` named for `drivers`; all have equal batch keys.

    A model's fault is its session's: an exception in a batch of several is retried one by one, so
    that only the guilty session fails. When memory runs out, the batch is made smaller until it
    fits, and a unit fails only if it does not fit alone. Call `take_emissions` on every driver
    afterwards.

    Raises:
        DeviceLostError: the device has failed, and nothing can be run any more.
    """
    begun = []
    for driver in drivers:
        try:
            begun.append(BatchUnit(driver, driver.begin()))
        except Exception as error:
            _report(driver, classify(error, instance.device))
    if begun:
        _BatchRun(kernel, instance, now_us, limit).run(begun)


@dataclass(frozen=True, slots=True)
class _BatchRun:
    """Runs units of one kernel."""

    kernel: LoopKernel[Any]
    instance: ModelInstance
    now_us: Callable[[], int]
    limit: BatchLimit | None

    def run(self, begun: Sequence[BatchUnit]) -> None:
        """Run units at once, or in parts where that fails."""
        started_us = self.now_us()
        failed = self._attempt(begun, started_us)
        # Here the failed attempt's frames are gone, and with them the memory that they held.
        if failed is None:
            return
        if len(begun) == 1:
            _report(begun[0].driver, failed)
        elif isinstance(failed, DeviceMemoryError):
            if self.limit is not None:
                self.limit.ran_out(len(begun))
            free_cached()
            half = len(begun) // 2
            self.run(begun[:half])
            self.run(begun[half:])
        else:
            for entry in begun:
                self.run([entry])

    def _attempt(self, begun: Sequence[BatchUnit], started_us: int) -> Exception | None:
        """Run units and complete them; return why that failed, and then none is completed."""
        try:
            results = self._results(begun)
        except Exception as error:
            return classify(error, self.instance.device)
        if self.limit is not None:
            self.limit.ran(len(begun))
        self._complete(begun, results, started_us)
        return None

    def _results(self, begun: Sequence[BatchUnit]) -> Sequence[StepResult[Any]]:
        def results() -> Sequence[StepResult[Any]]:
            return _results(self.kernel, self.instance, begun)

        if len(begun) > 1:
            return results()
        return retry_out_of_memory(results, self.instance.device)

    def _complete(
        self, begun: Sequence[BatchUnit], results: Sequence[StepResult[Any]], started_us: int
    ) -> None:
        ended_us = self.now_us()
        for entry, result in zip(begun, results, strict=True):
            try:
                entry.driver.complete(result, started_us, ended_us)
            except Exception as error:
                _report(entry.driver, classify(error, self.instance.device))


def _results(
    kernel: LoopKernel[Any], instance: ModelInstance, begun: Sequence[BatchUnit]
) -> Sequence[StepResult[Any]]:
    batch = StepBatch(instance, tuple(entry.unit for entry in begun))
    with torch.inference_mode():
        results = kernel.run_step(batch)
    if len(results) != len(begun):
        raise ValueError(f"{len(begun)} units gave {len(results)} results")
    return results


def _report(driver: LoopDriver[Any], error: Exception) -> None:
    driver.fail(error)
    if driver.ended:  # the first try told where
        what = f"{type(error).__name__}: {error}"
        whose = f"{driver.loop} of session {driver.session}"
        log.error("%s: a step failed again, so it ends: %s", whose, what)
    else:
        log.warning("session %s: a step failed", driver.session, exc_info=error)
