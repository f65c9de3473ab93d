"""When things are played: what holds however they come, on a clock that tests own."""

from dataclasses import dataclass
from itertools import combinations, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.media.pacer import Pacer

LATE_US = 150_000
AHEAD_US = 3_000_000


@dataclass(frozen=True)
class Played:
    """One piece: where it belongs, when it came, and when it is played."""

    pts_us: int
    came_us: int
    due_us: int

    @property
    def at_us(self) -> int:
        return max(self.due_us, self.came_us)


def play(pacer: Pacer, pieces: list[tuple[int, int]]) -> list[Played]:
    """Give pieces (media time, arrival) to a pacer as they come."""
    return [Played(pts_us, came_us, pacer.due_us(pts_us, came_us)) for pts_us, came_us in pieces]


@st.composite
def bursts(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Chunks of frames, each chunk at once, after waits that have nothing to do with media time."""
    frame_us = draw(st.sampled_from([20_000, 33_333, 50_000]))
    pts_us = came_us = 0
    pieces = []
    for _ in range(draw(st.integers(1, 12))):
        came_us += draw(st.integers(0, 1_500_000))
        for _ in range(draw(st.integers(1, 8))):
            pieces.append((pts_us, came_us))
            pts_us += frame_us
    return pieces


@settings(max_examples=50, deadline=None)
@given(bursts())
def test_a_burst_plays_evenly_and_a_stall_causes_no_hurry(pieces: list[tuple[int, int]]) -> None:
    played = play(Pacer(LATE_US, AHEAD_US), pieces)
    for before, after in combinations(played, 2):
        distance_us = after.pts_us - before.pts_us
        assert after.at_us - before.at_us >= distance_us - LATE_US


@settings(max_examples=50, deadline=None)
@given(bursts())
def test_nothing_is_played_before_it_came_or_before_what_was_before_it(
    pieces: list[tuple[int, int]],
) -> None:
    played = play(Pacer(LATE_US, AHEAD_US), pieces)
    for before, after in pairwise(played):
        assert after.at_us >= before.at_us
    assert all(piece.due_us >= piece.came_us - LATE_US for piece in played)


@settings(max_examples=50, deadline=None)
@given(bursts())
def test_nothing_waits_longer_than_the_worst_stall_before_it_makes_it(
    pieces: list[tuple[int, int]],
) -> None:
    worst_us = -(10**12)
    for piece in play(Pacer(LATE_US, 10**12), pieces):
        worst_us = max(worst_us, piece.came_us - piece.pts_us)
        assert piece.at_us <= piece.pts_us + worst_us


@settings(max_examples=50, deadline=None)
@given(bursts(), st.integers(0, 1_000_000))
def test_sound_and_pictures_stay_together_whatever_stalls(
    pieces: list[tuple[int, int]], apart_us: int
) -> None:
    """Sound of a chunk comes up to a second after its pictures, in no order with the next ones."""
    pacer = Pacer(LATE_US, AHEAD_US)
    both = [(pts_us, came_us, "video") for pts_us, came_us in pieces]
    both += [(pts_us, came_us + apart_us, "sound") for pts_us, came_us in pieces]
    both.sort(key=lambda piece: piece[1])
    before: tuple[int, Played] | None = None
    for pts_us, came_us, _ in both:
        piece = Played(pts_us, came_us, pacer.due_us(pts_us, came_us))
        if before is not None and before[0] == pacer.stalls:
            other = before[1]
            skew_us = (piece.at_us - other.at_us) - (piece.pts_us - other.pts_us)
            assert abs(skew_us) <= LATE_US
        before = (pacer.stalls, piece)


def test_what_is_on_time_never_moves_the_clock() -> None:
    pacer = Pacer()
    frames = [(frame * 50_000, frame // 4 * 200_000) for frame in range(400)]
    assert [piece.due_us for piece in play(pacer, frames)] == [pts_us for pts_us, _ in frames]
    assert pacer.stalls == 0


def test_after_a_stall_the_rest_keeps_its_distance() -> None:
    pacer = Pacer()
    before = play(pacer, [(0, 0), (50_000, 0)])
    after = play(pacer, [(100_000, 900_000), (150_000, 900_000), (200_000, 900_000)])
    assert [piece.due_us for piece in before] == [0, 50_000]
    assert [piece.due_us for piece in after] == [900_000, 950_000, 1_000_000]
    assert pacer.stalls == 1


def test_after_a_cut_the_next_is_played_at_once_be_it_earlier_or_later() -> None:
    pacer = Pacer()
    play(pacer, [(0, 0)])
    pacer.begin_anew()
    assert pacer.due_us(2_000_000, 10_000) == 10_000
    assert pacer.due_us(2_050_000, 10_000) == 60_000


def test_media_time_that_jumps_far_ahead_is_not_waited_for() -> None:
    pacer = Pacer()
    play(pacer, [(0, 0)])
    assert pacer.due_us(60_000_000, 1_000) == 1_000
    assert pacer.stalls == 0
