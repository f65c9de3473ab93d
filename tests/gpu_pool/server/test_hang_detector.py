"""What a hang between units looks like, without any worker."""

from dataclasses import dataclass, field

from reverie.gpu_pool.server.hang_detector import HangDetector
from reverie.gpu_pool.wire.messages import ToWorker

LIMIT_S = 30.0


@dataclass
class FakeWorker:
    """Both ends of a worker that takes messages when told to."""

    beat: int = 0
    taken: int = 1
    messages: list[ToWorker] = field(default_factory=list)

    @property
    def sent(self) -> int:
        return 1 + len(self.messages)

    def send(self, *messages: ToWorker) -> None:
        self.messages.extend(messages)


def watched(worker: FakeWorker, seconds: int, start_s: int = 0, takes: bool = True) -> list[str]:
    """Look twice a second and return the complaints."""
    watch = HangDetector(worker, worker, LIMIT_S)
    heard = []
    for tick in range(start_s * 2, (start_s + seconds) * 2):
        if trouble := watch.trouble(tick / 2):
            heard.append(trouble)
        if takes:
            worker.taken = worker.sent
    return heard


def test_a_worker_that_rests_is_pinged_now_and_then_and_left_alone() -> None:
    worker = FakeWorker()
    assert watched(worker, seconds=1000) == []
    assert len(worker.messages) == 1000 / 5


def test_a_worker_that_is_frozen_at_rest_is_found_out() -> None:
    worker = FakeWorker()
    heard = watched(worker, seconds=35, takes=False)
    assert heard
    assert set(heard) == {"it took no message for more than 30 s"}
    assert len(worker.messages) == 1, "one ping is enough"


def test_a_worker_whose_unit_runs_long_is_left_alone_until_the_limit() -> None:
    worker = FakeWorker(beat=1)
    worker.send()
    assert watched(worker, seconds=30, takes=False) == []
    assert set(watched(worker, seconds=31, takes=False)) == {"a step ran for more than 30 s"}
