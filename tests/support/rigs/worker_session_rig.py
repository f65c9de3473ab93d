"""Sessions of the talking stub on one step thread, with a clock that only units and a test move."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from loop_rig import Clock
from talking_stub import TalkingFamily
from unit_log import LoopWaits, UnitRun, run_logged

from reverie.engine.admission import Admission
from reverie.engine.emissions import Emission, FramesOut, TextOut
from reverie.engine.inputs import ControlId, ControlInput, TurnInput
from reverie.engine.options import DriverOptions
from reverie.engine.scheduler import StepScheduler
from reverie.gpu_pool.wire.session_messages import OpenSession, PlayheadMoved
from reverie.gpu_pool.worker.loaded_model import LoadedModel
from reverie.gpu_pool.worker.worker_session import WorkerSession
from reverie.models.contract.instance import LoadOptions
from reverie.models.contract.registry import ModelFamily

HISTORY = 3


def turn(text: str, control: str) -> ControlInput:
    return TurnInput(ControlId(control), text)


class WorkerSessionRig:
    """A step loop without a worker: what it runs, and what the drivers emit.

    Attributes:
        seen: viewers report every chunk as soon as it is out.
        ran: the units that ran, oldest first.
        waits: how long the loops of a session have waited for each other.
    """

    def __init__(
        self,
        family: ModelFamily | None = None,
        *,
        sessions: int = 3,
        max_batch: int = 8,
        history: int = HISTORY,
    ) -> None:
        self.clock = Clock()
        family = family or TalkingFamily(frames=2, rate_hz=20.0, sleep=self.clock.sleep)
        options = DriverOptions(history_chunks=history, snapshot_every_us=1)
        instance = family.load(LoadOptions(sessions=sessions, history_chunks=history))
        kernels = {loop.name: family.kernel(loop.name, instance) for loop in family.spec.loops}
        admission = Admission(instance, sessions, options)
        self.model = LoadedModel(instance, kernels, admission, options)
        self.scheduler = StepScheduler(max_batch)
        self.session_table: dict[str, WorkerSession] = {}
        self.heard: defaultdict[str, list[Emission]] = defaultdict(list)
        self.ran: list[UnitRun] = []
        self.waits = LoopWaits()
        self.seen = True

    def open(
        self, session: str = "a", program: str = "narrated_world", **parameters: float
    ) -> WorkerSession:
        """Begin a session."""
        return self.take_up(
            OpenSession(len(self.session_table), session, program, 7, "a lake", parameters)
        )

    def take_up(self, message: OpenSession) -> WorkerSession:
        """Begin a session, or recover one that another rig has lost."""
        self.model.admission.admit(message.session, self.model.loops(message.program))
        self.session_table[message.session] = worker_session = WorkerSession(self.model, message)
        return worker_session

    def close(self, session: str) -> None:
        self.session_table.pop(session).close()
        self.model.admission.leave(session)
        self.scheduler.forget(session)

    def step(self) -> list[tuple[str, str]]:
        """Run one batch; return the session and loop of each unit."""
        now_us = self.clock.now_us
        candidates = [
            each
            for worker_session in self.session_table.values()
            for each in worker_session.candidates(now_us)
        ]
        picked = self.scheduler.pick(candidates)
        self.waits.note(candidates, picked)
        drivers: list[Any] = [
            self.session_table[candidate.session].driver(candidate.owner.loop)
            for candidate in picked
        ]
        if drivers:
            kernel = self.model.kernels[drivers[0].loop]
            self.ran += run_logged(kernel, self.model.instance, drivers, self._tick)
        for session, worker_session in self.session_table.items():
            self._hear(session, worker_session.take_emissions())
        return [(driver.session, driver.loop) for driver in drivers]

    def run(self, until: Callable[[], object], limit: int = 5000) -> None:
        """Step until something is so; while nothing can run, time passes."""
        for _ in range(limit):
            if until():
                return
            if not self.step():
                self.clock.now_us += 1000
        raise AssertionError(f"not so after {limit} steps")

    def run_for(self, duration_us: int) -> None:
        """Step until so much time has passed."""
        end_us = self.clock.now_us + duration_us
        self.run(lambda: self.clock.now_us >= end_us, limit=100_000)

    def of(self, session: str, *kinds: type[Any]) -> list[Any]:
        return [each for each in self.heard[session] if isinstance(each, kinds)]

    def chunks(self, session: str = "a") -> int:
        """How many chunks were put out."""
        return len(self.of(session, FramesOut))

    def words(self, session: str = "a") -> dict[int, str]:
        """What was said, by utterance."""
        told: defaultdict[int, str] = defaultdict(str)
        for out in self.of(session, TextOut):
            told[out.chunk] += out.text
        return dict(told)

    @property
    def free_blocks(self) -> int:
        assert self.model.instance.blocks is not None, "the stub has a pool"
        return self.model.instance.blocks.free

    def assert_nothing_is_lost(self) -> None:
        """End every session; every block is free again."""
        for session in list(self.session_table):
            self.close(session)
        if self.model.instance.blocks is not None:
            assert self.free_blocks == self.model.instance.blocks.count

    def _hear(self, session: str, emissions: Sequence[Emission]) -> None:
        self.heard[session] += emissions
        for emission in emissions:
            if self.seen and isinstance(emission, FramesOut):
                moved = PlayheadMoved(session, emission.header.chunk, emission.header.loop)
                self.session_table[session].seen(moved, self.clock.now_us)

    def _tick(self) -> int:
        self.clock.now_us += 500
        return self.clock.now_us
