import pytest

from reverie.gpu_pool.heartbeat import Heartbeat, Stall
from reverie.gpu_pool.memory import SharedMemory


@pytest.fixture
def ends() -> tuple[Heartbeat, Heartbeat]:
    memory = SharedMemory.create()
    Heartbeat.prepare(memory)
    return Heartbeat(memory), Heartbeat(memory.duplicate())


def test_the_counter_is_odd_only_while_a_unit_runs(ends: tuple[Heartbeat, Heartbeat]) -> None:
    worker, server = ends
    assert server.beat == 0
    with worker.unit([1]):
        assert server.beat == 1
    assert server.beat == 2


def test_the_sessions_of_the_running_unit_are_under_suspicion(
    ends: tuple[Heartbeat, Heartbeat],
) -> None:
    worker, server = ends
    with worker.unit([7, 2**40]):
        assert server.suspects() == {7, 2**40}
    assert server.suspects() == frozenset()
    with worker.unit([8]):
        assert server.suspects() == {8}


def test_an_exception_leaves_the_mark(ends: tuple[Heartbeat, Heartbeat]) -> None:
    worker, server = ends
    with pytest.raises(RuntimeError), worker.unit([9]):
        raise RuntimeError
    assert server.suspects() == {9}


def test_a_batch_larger_than_the_memory_is_cut(ends: tuple[Heartbeat, Heartbeat]) -> None:
    worker, server = ends
    with worker.unit(range(10_000)):
        assert len(server.suspects()) == 500


def test_a_stall_is_the_time_for_which_one_unit_was_seen_running() -> None:
    stall = Stall()
    assert stall.observe(1, 10.0) == 0.0
    assert stall.observe(1, 12.5) == 2.5
    assert stall.observe(3, 13.0) == 0.0  # the next unit already
    assert stall.observe(3, 14.0) == 1.0


def test_a_worker_between_units_never_stalls() -> None:
    stall = Stall()
    assert stall.observe(0, 0.0) == 0.0
    assert stall.observe(0, 1e6) == 0.0
    assert stall.observe(2, 2e6) == 0.0
    assert stall.observe(2, 3e6) == 0.0
