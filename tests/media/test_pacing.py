"""Bursts are spread, without delay for what might come late."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from reverie.media.pacing import PacketPacer

FRAME_US = 40_000


def test_a_burst_is_spread() -> None:
    spacing = PacketPacer()
    assert [spacing.due_us(0, FRAME_US, 1000) for _ in range(3)] == [1000, 41_000, 81_000]


def test_the_next_chunk_waits_until_the_one_before_it_is_out() -> None:
    spacing = PacketPacer()
    dues = [spacing.due_us(number // 3, FRAME_US, 0) for number in range(6)]
    assert dues == [0, 40_000, 80_000, 100_000, 140_000, 180_000]


def test_what_comes_one_by_one_is_sent_at_once_and_a_delay_is_made_up_for() -> None:
    spacing = PacketPacer()
    came_us = [number * FRAME_US for number in range(20)]
    came_us[5:9] = [360_000] * 4  # held up for 160 ms, then all at once
    waits = [spacing.due_us(n, FRAME_US, now) - now for n, now in enumerate(came_us)]
    assert waits[:6] == [0] * 6
    assert waits[9] > 0
    assert waits[13:] == [0] * 7


def test_a_stall_is_no_rate() -> None:
    spacing = PacketPacer()
    for chunk, now_us in enumerate((0, 80_000, 160_000, 2_000_000)):
        dues = [spacing.due_us(chunk, FRAME_US, now_us) for _ in range(2)]
    assert dues == [2_000_000, 2_040_000]


def test_frames_spread_no_further_than_twice_their_length_and_close_up_again() -> None:
    spacing = PacketPacer()
    dues: list[int] = []
    for chunk in range(30):  # 80 ms of frames every 200
        dues = [spacing.due_us(chunk, FRAME_US, chunk * 200_000) for _ in range(2)]
    assert 1.9 * FRAME_US < dues[1] - dues[0] <= 2 * FRAME_US
    for chunk in range(30, 60):
        now_us = 6_000_000 + (chunk - 30) * 80_000
        dues = [spacing.due_us(chunk, FRAME_US, now_us) for _ in range(2)]
    assert dues[1] - dues[0] < 1.05 * FRAME_US


def test_a_model_that_waits_for_the_viewer_is_not_slowed_for_good() -> None:
    """Each chunk is made when the one before it has been played, after one that was late."""
    spacing = PacketPacer()
    for chunk in range(20):  # 160 ms of frames every 280
        dues = [spacing.due_us(chunk, FRAME_US, chunk * 280_000) for _ in range(4)]
    assert dues[1] - dues[0] > 1.5 * FRAME_US
    for chunk in range(20, 80):
        played_us = 2 * dues[-1] - dues[-2]
        dues = [spacing.due_us(chunk, FRAME_US, played_us) for _ in range(4)]
    assert dues[1] - dues[0] < 1.05 * FRAME_US


def test_after_a_cut_what_is_new_is_sent_at_once() -> None:
    spacing = PacketPacer()
    for _ in range(12):
        spacing.due_us(0, FRAME_US, 0)
    spacing.restart()
    assert spacing.due_us(1, FRAME_US, 10) == 10


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 200_000)), min_size=1))
def test_order_and_the_present_are_kept(steps: list[tuple[int, int]]) -> None:
    spacing, now_us, chunk, dues = PacketPacer(), 0, 0, []
    for further, later_us in steps:
        chunk, now_us = chunk + further, now_us + later_us
        dues.append(spacing.due_us(chunk, FRAME_US, now_us))
        assert dues[-1] >= now_us
    assert all(after - before >= FRAME_US // 2 for before, after in pairwise(dues))
