"""RTP times only grow. Of pictures they are when each is due; of sound they keep media time."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.media.pacing import PacketPacer
from reverie.rtc.webrtc.rtp_time import DueTime, RtpTime


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


def rtp_of(came_us: list[int], frames: int = 1) -> list[float]:
    """Return the RTP times, in ms, of chunks of frames of 40 ms that come at these times."""
    pacer, time = PacketPacer(), DueTime(90_000)
    return [
        time.ticks(pacer.due_us(chunk, 40_000, now_us)) / 90
        for chunk, now_us in enumerate(came_us)
        for _ in range(frames)
    ]


@pytest.mark.parametrize("every_ms", [38, 40, 44, 50, 400])
def test_pictures_have_the_distances_at_which_they_are_sent(every_ms: int) -> None:
    """A model at its rate, a little above, 10 and 20 % below, or at a tenth of it."""
    assert rtp_of([1000 * every_ms * n for n in range(50)]) == [every_ms * n for n in range(50)]


def test_after_a_stall_pictures_have_the_distances_that_they_had_before() -> None:
    came_us = [40_000 * n + (500_000 if n >= 10 else 0) for n in range(20)]
    assert rtp_of(came_us) == [each / 1000 for each in came_us]


def test_a_rate_that_changes_in_the_middle_is_followed_at_once() -> None:
    came_us = [40_000 * n for n in range(10)] + [400_000 + 80_000 * n for n in range(10)]
    assert rtp_of(came_us) == [each / 1000 for each in came_us]


def test_a_slow_model_of_several_frames_a_chunk_is_slow_evenly() -> None:
    times = rtp_of([200_000 * n for n in range(60)], frames=4)
    distances = [after - before for before, after in pairwise(times[-80:])]
    assert min(distances) > 45
    assert max(distances) < 60


def test_what_was_cut_leaves_no_gap_and_repeats_no_time() -> None:
    time = DueTime(90_000)
    ticks = [time.ticks(40_000 * n) for n in range(5)]
    time.sent(ticks[1])
    time.restart()
    assert time.ticks(50_000) == 4500
    assert time.ticks(50_000) == 4501


@given(st.lists(st.tuples(st.integers(0, 10**6), st.booleans(), st.booleans()), min_size=2))
def test_rtp_times_of_pictures_always_increase(steps: list[tuple[int, bool, bool]]) -> None:
    time, due_us, sent = DueTime(90_000), 0, []
    for later_us, leaves, cut in steps:
        if cut:
            time.restart()
        due_us += later_us
        ticks = time.ticks(due_us)
        if leaves:
            time.sent(ticks)
            sent.append(ticks)
    assert all(after > before for before, after in pairwise(sent))
