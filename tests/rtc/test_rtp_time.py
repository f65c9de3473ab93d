"""RTP times only grow, and keep pace with the clock."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from reverie.rtc.rtp_time import RtpTime


def test_it_counts_from_nothing_at_its_rate() -> None:
    time = RtpTime(90_000)
    assert [time.ticks(each) for each in (5_000_000, 5_033_333, 6_000_000)] == [0, 2999, 90_000]


@given(st.lists(st.integers(0, 10**9), min_size=2))
def test_it_never_goes_back_or_stands(moments_us: list[int]) -> None:
    time = RtpTime(48_000)
    ticks = [time.ticks(each) for each in moments_us]
    assert all(after > before for before, after in pairwise(ticks))
    if moments_us == sorted(moments_us):
        exact = (moments_us[-1] - moments_us[0]) * 48_000 // 1_000_000
        assert exact <= ticks[-1] <= exact + len(ticks)
