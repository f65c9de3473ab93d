"""Who takes less than is sent is sent less, in whole runs of frames."""

from hypothesis import given
from hypothesis import strategies as st

from reverie.rtc.webrtc.video_out import BitrateBudget

FRAME_US = 33_333


def test_a_receiver_without_reports_is_sent_everything() -> None:
    budget = BitrateBudget()
    assert all(budget.spend(10**6, number) for number in range(100))
    assert budget.recovered


@given(
    rate=st.integers(50_000, 5_000_000),
    sizes=st.lists(st.integers(1, 20_000), min_size=30, max_size=200),
)
def test_in_the_long_run_no_more_is_sent_than_is_taken(rate: int, sizes: list[int]) -> None:
    budget = BitrateBudget()
    budget.limit(rate)
    sent = last = 0
    for number, size in enumerate(sizes):
        if budget.spend(size, number * FRAME_US):
            sent += size * 8
            last = size * 8
    seconds = len(sizes) * FRAME_US / 1e6
    assert sent <= rate * (seconds + 1.0) + last


def test_after_running_dry_half_a_second_gathers_first() -> None:
    budget = BitrateBudget()
    budget.limit(100_000)
    assert budget.spend(12_500, 0)
    assert not budget.spend(1, 0)
    assert not budget.recovered
    budget.spend(0, 600_000)
    assert budget.recovered
