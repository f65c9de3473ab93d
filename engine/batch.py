"""Running one batch: begin every unit, run the kernel once, complete every unit."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from reverie.engine.admission import CostBook
from reverie.engine.candidate import LoopOf
from reverie.engine.driver import LoopDriver
from reverie.models.instance import ModelInstance
from reverie.models.loop import LoopKernel, StepBatch, StepResult, StepUnit

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Begun:
    """A unit, and whose it is."""

    driver: LoopDriver[Any]
    unit: StepUnit[Any]

    @property
    def owner(self) -> LoopOf:
        """Whose time it takes."""
        return LoopOf(self.driver.session, self.driver.loop)


def run_batch(
    kernel: LoopKernel[Any],
    instance: ModelInstance,
    drivers: Sequence[LoopDriver[Any]],
    now_us: Callable[[], int],
    costs: CostBook | None = None,
) -> None:
    """Run the units that `ready` named for `drivers`; all have equal batch keys.

    Never raises for a model's fault: an exception in a batch of several is retried one by one, so
    that only the guilty session fails. Call `take_emissions` on every driver afterwards.
    """
    begun = []
    for driver in drivers:
        try:
            begun.append(Begun(driver, driver.begin()))
        except Exception as error:
            _report(driver, error)
    if begun:
        _run(kernel, instance, begun, now_us, costs)


def _run(
    kernel: LoopKernel[Any],
    instance: ModelInstance,
    begun: Sequence[Begun],
    now_us: Callable[[], int],
    costs: CostBook | None,
) -> None:
    started_us = now_us()
    try:
        results = _results(kernel, instance, begun)
    except Exception as error:
        if len(begun) == 1:
            _report(begun[0].driver, error)
            return
        for entry in begun:
            _run(kernel, instance, [entry], now_us, costs)
        return
    ended_us = now_us()
    for entry, result in zip(begun, results, strict=True):
        if costs is not None:
            seconds = (ended_us - started_us) / 1e6 / len(begun)
            costs.unit(entry.owner, kernel.spec, entry.unit.plan, seconds)
        try:
            entry.driver.complete(result, started_us, ended_us, len(begun))
        except Exception as error:
            _report(entry.driver, error)


def _results(
    kernel: LoopKernel[Any], instance: ModelInstance, begun: Sequence[Begun]
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
