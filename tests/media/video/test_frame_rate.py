"""Frames at any rate, at one rate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.media import Piece
from reverie.media.video.frame_rate import LONGEST_HOLD_S, SteadyRate


def frame(number: int, pts_ms: float, *, last: bool = False) -> Piece:
    return Piece(round(pts_ms * 1000), np.full((1, 1, 3), number % 256, np.uint8), last)


def run(rate_hz: float, times_ms: list[float]) -> list[Piece]:
    steady = SteadyRate(rate_hz)
    out: list[Piece] = []
    for number, pts_ms in enumerate(times_ms):
        out += steady.take(frame(number, pts_ms, last=number == len(times_ms) - 1))
    return out


def numbers(pieces: list[Piece]) -> list[int]:
    return [int(piece.data[0, 0, 0]) for piece in pieces]


def test_at_its_own_rate_a_clip_comes_out_as_it_is() -> None:
    times = [index * 1000 / 30 for index in range(20)]
    out = run(30.0, times)
    assert numbers(out) == list(range(20))
    assert [piece.pts_us for piece in out] == [round(index * 1e6 / 30) for index in range(20)]
    assert [piece.last for piece in out] == [False] * 19 + [True]


def test_of_a_faster_clip_frames_are_left_out_and_of_a_slower_one_repeated() -> None:
    fast = numbers(run(10.0, [index * 1000 / 60 for index in range(60)]))
    assert len(fast) == pytest.approx(10, abs=1)
    assert fast == sorted(set(fast))
    slow = numbers(run(20.0, [index * 1000 / 5 for index in range(5)]))
    assert len(slow) == pytest.approx(17, abs=1)
    assert slow == sorted(slow)


def test_a_picture_by_itself_is_one_frame_and_the_next_clip_begins_anew() -> None:
    steady = SteadyRate(12.0)
    assert len(steady.take(frame(1, 5000, last=True))) == 1
    [again] = steady.take(frame(2, 100, last=True))
    assert (again.pts_us, again.last) == (100_000, True)


def test_c34_times_that_stand_still_or_go_back_make_no_burst() -> None:
    times, now = [], 0.0
    for _ in range(40):
        for step in (32, 33, 1, 0, -5, 500, 33):
            times.append(now)
            now += step
    out = run(30.0, times)
    length_s = (out[-1].pts_us - out[0].pts_us) / 1e6
    assert length_s == pytest.approx((times[-1] - times[0]) / 1000, abs=0.1)


def test_a_gap_is_not_filled_with_an_hour_of_one_frame() -> None:
    out = run(30.0, [0, 33, 3_600_000, 3_600_033])
    assert len(out) <= LONGEST_HOLD_S * 30 + 4


def test_a_clip_that_is_left_ends_with_its_newest_frame() -> None:
    steady = SteadyRate(30.0)
    steady.take(frame(1, 0))
    assert steady.open
    [rest] = steady.finish()
    assert rest.last
    assert not steady.open
    assert steady.finish() == ()


@given(
    rate_hz=st.floats(1, 60),
    steps_ms=st.lists(st.floats(-5000, 5000), min_size=1, max_size=60),
)
def test_whatever_the_times_moments_rise_evenly_and_stay_bounded(
    rate_hz: float, steps_ms: list[float]
) -> None:
    times = [100_000 + sum(steps_ms[:index]) for index in range(len(steps_ms))]
    out = run(rate_hz, times)
    assert out[-1].last
    assert numbers(out)[-1] == len(times) - 1
    assert not any(piece.last for piece in out[:-1])
    gaps = np.diff([piece.pts_us for piece in out])
    assert np.abs(gaps - 1e6 / rate_hz).max(initial=0) <= 1
    assert len(out) <= 1 + len(times) * (LONGEST_HOLD_S * rate_hz + 1)
