"""A driver with a kernel, a clock of its own and a viewer, stepped by hand."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from stub_model import StubFamily, stub_request
from unit_log import UnitRun, run_logged

from reverie.engine.checkpoints import Checkpoint
from reverie.engine.driver import DriverOptions, LoopDriver, LoopStart
from reverie.engine.emissions import Emission, FramesOut
from reverie.engine.outputs import FrameMemory, new_memory
from reverie.engine.scheduler import StepScheduler
from reverie.models.contract.instance import LoadOptions, ModelInstance
from reverie.models.contract.loop import Durable, LoopKernel, LoopRequest
from reverie.models.contract.registry import ModelFamily

UNIT_US = 1000


@dataclass
class Clock:
    """Microseconds that pass only when a test says so."""

    now_us: int = 0

    def __call__(self) -> int:
        return self.now_us

    def sleep(self, seconds: float) -> None:
        self.now_us += round(seconds * 1e6)


@dataclass
class Rig:
    """One instance, its kernel, and the sessions that run on it.

    Attributes:
        seen_at_once: the viewers report every chunk as soon as it is out.
        loaded: an instance to use; None loads one.
        loop: which one runs; empty takes the family's first.
        heard: emissions by session, in order.
        ran: the units that ran, in order.
    """

    family: ModelFamily
    options: LoadOptions = field(default_factory=lambda: LoadOptions(device="cpu", sessions=4))
    clock: Clock = field(default_factory=Clock)
    seen_at_once: bool = True
    max_batch: int = 8
    loaded: ModelInstance | None = None
    loop: str = ""

    def __post_init__(self) -> None:
        self.instance = self.loaded or self.family.load(self.options)
        loop = self.loop or self.family.spec.loops[0].name
        self.kernel: LoopKernel[Any] = self.family.kernel(loop, self.instance)
        self.scheduler = StepScheduler(self.max_batch)
        self.drivers: dict[str, LoopDriver[Any]] = {}
        self.heard: dict[str, list[Emission]] = {}
        self.ran: list[UnitRun] = []

    def again(self) -> Self:
        """Return a rig without sessions on the same instance: loading takes its time."""
        return type(self)(
            self.family,
            self.options,
            seen_at_once=self.seen_at_once,
            max_batch=self.max_batch,
            loaded=self.instance,
            loop=self.loop,
        )

    def open(
        self,
        request: LoopRequest | None = None,
        options: DriverOptions | None = None,
        durable: Durable | None = None,
        chunks: int = 0,
        pts_us: int = 0,
        checkpoint: Checkpoint[Any] | None = None,
        frame_memory: FrameMemory = new_memory,
    ) -> LoopDriver[Any]:
        request = request or stub_request()
        options = options or DriverOptions(history_chunks=self.options.history_chunks)
        driver = LoopDriver(
            self.kernel,
            self.instance,
            request,
            options,
            LoopStart(
                durable=durable,
                chunks=chunks,
                pts_us=pts_us,
                checkpoint=checkpoint,
                frame_memory=frame_memory,
            ),
        )
        self.drivers[request.session] = driver
        self.heard.setdefault(request.session, [])
        return driver

    def close(self, session: str) -> None:
        driver = self.drivers.pop(session)
        driver.close()
        self.heard[session] += driver.take_emissions()
        self.scheduler.forget(session)

    def step(self) -> list[str]:
        """Run one batch; return the sessions whose units ran, none when nothing could."""
        candidates = [driver.ready(self.clock.now_us) for driver in self.drivers.values()]
        picked = self.scheduler.pick([found for found in candidates if found])
        drivers = [self.drivers[candidate.session] for candidate in picked]
        if drivers:
            limit = self.scheduler.limit
            self.ran += run_logged(self.kernel, self.instance, drivers, self._tick, limit)
        for session, driver in self.drivers.items():
            self._hear(session, driver.take_emissions())
        return [driver.session for driver in drivers]

    def run(self, until: Callable[[], bool], limit: int = 2000) -> None:
        """Step until something is so."""
        for _ in range(limit):
            if until():
                return
            self.step()
        raise AssertionError(f"not so after {limit} steps")

    def run_chunks(self, session: str, chunks: int) -> list[FramesOut]:
        """Step until the session has put out so many more chunks; return their frames."""
        before = len(self.frames(session))
        self.run(lambda: len(self.frames(session)) >= before + chunks)
        return self.frames(session)[before:]

    def run_idle(self, limit: int = 2000) -> int:
        """Step until nothing can run; return how many batches ran."""
        for count in range(limit):
            if not self.step():
                return count
        raise AssertionError(f"still running after {limit} steps")

    def frames(self, session: str) -> list[FramesOut]:
        return self.heard_of(session, FramesOut)

    def units(self, session: str) -> list[UnitRun]:
        return [unit for unit in self.ran if unit.session == session]

    def heard_of(self, session: str, *kinds: type[Any]) -> list[Any]:
        return [emission for emission in self.heard[session] if isinstance(emission, kinds)]

    def _hear(self, session: str, emissions: Sequence[Emission]) -> None:
        self.heard[session] += emissions
        if not self.seen_at_once:
            return
        for emission in emissions:
            if isinstance(emission, FramesOut):
                self.drivers[session].seen(emission.header.chunk, self.clock.now_us)

    def _tick(self) -> int:
        self.clock.now_us += UNIT_US // 2
        return self.clock.now_us


def stub_rig(
    *, sessions: int = 4, history_chunks: int = 4, seen_at_once: bool = True, max_batch: int = 8
) -> Rig:
    """Return a rig with the stub, whose units pass no time but the clock's."""
    clock = Clock()
    return Rig(
        StubFamily(frames=2, rate_hz=20.0, sleep=clock.sleep),
        LoadOptions(device="cpu", sessions=sessions, history_chunks=history_chunks),
        clock,
        seen_at_once,
        max_batch,
    )
