"""Pauses that grow, up to a limit, until an attempt succeeds."""

from reverie.gpu_pool.wire.backoff import Backoff


def test_each_pause_is_twice_the_one_before_up_to_the_longest() -> None:
    backoff = Backoff(0.5, 3.0)
    assert [backoff.take() for _ in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    assert backoff.pause_s == 3.0


def test_after_a_success_the_pauses_begin_with_the_first_again() -> None:
    backoff = Backoff(0.5, 3.0)
    backoff.take()
    backoff.restart()
    assert (backoff.pause_s, backoff.take(), backoff.take()) == (0.5, 0.5, 1.0)
