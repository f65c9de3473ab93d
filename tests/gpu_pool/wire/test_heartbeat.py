import pytest

from reverie.gpu_pool.wire.heartbeat import Heartbeat, Stall
from reverie.gpu_pool.wire.shared_memory import SharedMemory


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
    assert stall.observe(1, 0, 0, 10.0) == 0.0
    assert stall.observe(1, 0, 0, 12.5) == 2.5
    assert stall.observe(3, 0, 0, 13.0) == 0.0  # the next unit already
    assert stall.observe(3, 0, 0, 14.0) == 1.0


def test_a_worker_that_has_taken_everything_never_stalls_between_units() -> None:
    stall = Stall()
    assert stall.observe(0, 0, 0, 0.0) == 0.0
    assert stall.observe(0, 0, 0, 1e6) == 0.0
    assert stall.observe(2, 5, 5, 2e6) == 0.0
    assert stall.observe(2, 5, 5, 3e6) == 0.0


def test_a_message_that_is_not_taken_is_a_stall_from_when_it_was_sent() -> None:
    stall = Stall()
    stall.observe(2, 5, 5, 1e6)
    assert stall.observe(2, 5, 6, 1e6 + 2.0) == 2.0
    assert stall.observe(2, 5, 9, 1e6 + 3.0) == 3.0
    assert stall.observe(2, 6, 9, 1e6 + 4.0) == 0.0, "it takes them one by one"


def test_a_message_may_wait_for_a_long_unit() -> None:
    stall = Stall()
    stall.observe(1, 5, 5, 0.0)
    assert stall.observe(1, 5, 6, 29.0) == 29.0
    assert stall.observe(2, 5, 6, 29.5) == 0.0, "the unit is over, and the messages come next"
    assert stall.observe(2, 6, 6, 30.0) == 0.0


def test_the_server_reads_how_many_messages_were_taken(ends: tuple[Heartbeat, Heartbeat]) -> None:
    worker, server = ends
    worker.take(3)
    with worker.unit([1]):
        worker.take(2)
        assert (server.taken, server.beat, server.suspects()) == (5, 1, frozenset({1}))
