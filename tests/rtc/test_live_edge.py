"""A distance that is only delay goes; a lead stays."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.rtc.live_edge import MARGIN_US, MOST_US, LiveEdge

FRAME_US = 33_333


def live(slack_us: int, jitter_us: list[int], frames: int) -> list[int]:
    """Return the distances left of pictures that come at a rate of their own."""
    edge, left = LiveEdge(), []
    for number in range(frames):
        slack = slack_us - jitter_us[number % len(jitter_us)]
        left.append(slack - edge.shift_us(slack, number * FRAME_US))
    return left


def test_delay_that_was_never_needed_goes_within_seconds() -> None:
    left = live(66_000, [0], 150)
    assert left[0] == 66_000
    assert 0 < left[-1] <= 2 * MARGIN_US
    assert all(before - after <= FRAME_US * 0.11 for before, after in itertools.pairwise(left))


@settings(max_examples=50)
@given(
    slack_us=st.integers(0, 400_000),
    jitter_us=st.lists(st.integers(0, 60_000), min_size=1, max_size=15),
)
def test_what_is_needed_for_jitter_stays(slack_us: int, jitter_us: list[int]) -> None:
    worst_us = max(jitter_us)
    left = live(slack_us + worst_us, jitter_us, 1200)
    assert min(left) >= 0 or slack_us < 0
    assert min(left[-60:]) <= max(2 * MARGIN_US, 0) or slack_us > 10 * MOST_US


def test_a_lead_stays_a_lead() -> None:
    """Who generates because the picture before was seen follows whoever plays faster."""
    edge, now_us, fast_us = LiveEdge(), 0, 0
    for _ in range(30 * 120):
        shift = edge.shift_us(100_000 + edge._shift_us, now_us)
        fast_us = max(fast_us, shift)
        now_us += FRAME_US
    assert fast_us <= 4 * MOST_US  # in two minutes: tries that rest longer and longer


def test_a_pacer_that_begins_anew_owes_nothing() -> None:
    edge = LiveEdge()
    for number in range(100):
        edge.shift_us(90_000, number * FRAME_US)
    edge.begin_anew()
    assert edge.shift_us(0, 101 * FRAME_US) == 0
