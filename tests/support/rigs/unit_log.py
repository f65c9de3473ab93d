"""What ran in a batch, and how long the loops of a session have waited for each other."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from reverie.engine.batch import run_batch
from reverie.engine.driver import LoopDriver
from reverie.engine.scheduler import BatchLimit, Candidate, LoopOf
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import LoopKernel, StepResult


@dataclass(frozen=True)
class UnitRun:
    """One unit that a kernel has run.

    Attributes:
        batch: how many units ran at once.
    """

    session: str
    loop: str
    kind: str
    step: int
    chunk: int
    batch: int


class LoggedDriver:
    """What `run_batch` needs of a driver; notes each unit as it completes."""

    def __init__(self, driver: LoopDriver[Any], log: list[tuple[int, UnitRun]]) -> None:
        self._driver = driver
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def complete(self, result: StepResult[Any], started_us: int, ended_us: int) -> None:
        context = self._driver._context
        assert context.unit is not None
        unit = UnitRun(
            context.session,
            context.kernel.spec.name,
            context.unit.plan.kind,
            context.step - 1,
            context.emitter.chunk,
            0,
        )
        self._log.append((started_us, unit))
        self._driver.complete(result, started_us, ended_us)


def run_logged(
    kernel: LoopKernel[Any],
    instance: ModelInstance,
    drivers: Sequence[LoopDriver[Any]],
    now_us: Callable[[], int],
    limit: BatchLimit | None = None,
) -> list[UnitRun]:
    """Run a batch as `run_batch` does; return the units that the kernel has run.

    Those that began at one time were in one batch: a batch that fails is run again in parts.
    """
    log: list[tuple[int, UnitRun]] = []
    logged = [cast("LoopDriver[Any]", LoggedDriver(each, log)) for each in drivers]
    run_batch(kernel, instance, logged, now_us, limit)
    sizes = Counter(started_us for started_us, _ in log)
    return [replace(unit, batch=sizes[started_us]) for started_us, unit in log]


@dataclass
class LoopWaits:
    """Counts, for each loop, the units of its session's other loops that ran while it could have.

    Attributes:
        longest: the most that any loop has waited.
    """

    longest: int = 0
    _waits: dict[LoopOf, int] = field(default_factory=dict)

    def note(self, candidates: Sequence[Candidate], picked: Sequence[Candidate]) -> None:
        """Count a pick of the scheduler."""
        ran = Counter(chosen.session for chosen in picked)
        waits = {}
        for candidate in candidates:
            owner = candidate.owner
            if candidate in picked:
                waits[owner] = 0
            else:
                waits[owner] = self._waits.get(owner, 0) + ran[candidate.session]
        self._waits = waits
        self.longest = max([self.longest, *waits.values()])
