"""RTP times only grow; they keep the distances of media time while it runs on."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from reverie.rtc.webrtc.rtp_time import RtpTime


def test_media_time_is_kept_however_it_comes() -> None:
    time = RtpTime(90_000)
    came_us = (0, 10, 20, 400_000)  # a burst, and one that is late
    ticks = []
    for number, now_us in enumerate(came_us):
        ticks.append(time.ticks(number * 33_333, now_us))
        time.sent(ticks[-1], now_us)
    assert ticks == [0, 3000, 6000, 9000]


def test_sound_is_counted_in_samples() -> None:
    time = RtpTime(48_000)
    assert [time.ticks(number * 20_000, 7) for number in range(3)] == [0, 960, 1920]


def test_after_a_stall_there_is_a_gap() -> None:
    time = RtpTime(90_000)
    time.ticks(0, 0)
    time.sent(0, 0)
    assert time.ticks(33_333, 5_000_000) == 450_000
    assert time.ticks(66_666, 5_000_001) == 453_000


def test_after_a_cut_rtp_time_continues_from_what_was_sent() -> None:
    time = RtpTime(90_000)
    for number in range(10):
        time.ticks(number * 100_000, 0)
    time.sent(9000, 100_000)
    time.restart()
    assert time.ticks(200_000, 150_000) == 13_500  # media time went back, RTP time did not
    assert time.ticks(300_000, 150_000) == 22_500


def test_what_is_shown_once_more_is_newer() -> None:
    time = RtpTime(90_000)
    time.ticks(0, 0)
    time.sent(0, 0)
    assert time.ticks(0, 500_000) == 45_000


@given(st.lists(st.tuples(st.integers(0, 10**8), st.integers(0, 10**6), st.booleans()), min_size=2))
def test_rtp_time_always_increases(steps: list[tuple[int, int, bool]]) -> None:
    time, now_us, sent = RtpTime(90_000), 0, []
    for pts_us, later_us, cut in steps:
        now_us += later_us
        if cut:
            time.restart()
        ticks = time.ticks(pts_us, now_us)
        time.sent(ticks, now_us)
        sent.append(ticks)
    assert all(after > before for before, after in pairwise(sent))
