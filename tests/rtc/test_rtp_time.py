"""RTP times only grow, and keep pace with the clock."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from reverie.rtc.rtp_time import RtpTime, SoundTime


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


def test_sound_that_follows_is_counted_in_samples_however_it_is_sent() -> None:
    time = SoundTime(48_000)
    sent_us = (0, 19_000, 37_000, 61_000)  # a little faster, and a little late
    ticks = [time.ticks(number * 20_000, due_us) for number, due_us in enumerate(sent_us)]
    assert ticks == [0, 960, 1920, 2880]


def test_after_a_stall_sound_has_a_gap() -> None:
    time = SoundTime(48_000)
    assert [time.ticks(0, 0), time.ticks(20_000, 520_000)] == [0, 24_960]


@given(st.lists(st.tuples(st.integers(0, 10**8), st.integers(0, 10**9)), min_size=2))
def test_sound_never_goes_back_or_stands(moments: list[tuple[int, int]]) -> None:
    time = SoundTime(48_000)
    ticks = [time.ticks(*each) for each in moments]
    assert all(after > before for before, after in pairwise(ticks))
