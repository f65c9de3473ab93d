"""Running one batch: begin every unit, run the kernel once, complete every unit. API SKELETON."""

from collections.abc import Callable, Sequence
from typing import Any

from reverie.engine.admission import CostBook
from reverie.engine.driver import LoopDriver
from reverie.models.instance import ModelInstance
from reverie.models.loop import LoopKernel


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
    raise NotImplementedError
