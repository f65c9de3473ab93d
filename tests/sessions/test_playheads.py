"""Whose eyes count, and what cannot have been seen."""

import pytest

from reverie.sessions.errors import CommandError
from reverie.sessions.playheads import NOTHING, Playheads, Seen


def test_the_driver_sets_the_pace_however_far_viewers_are() -> None:
    heads = Playheads()
    heads.enter(1, drives=True, shown=NOTHING)
    heads.enter(2, drives=False, shown=NOTHING)
    heads.advance(2, Seen(9, 900), newest=9)
    heads.advance(1, Seen(3, 300), newest=9)
    assert heads.governing == Seen(3, 300)


def test_without_a_driver_the_viewer_furthest_on_sets_it() -> None:
    heads = Playheads()
    for key, chunk in ((1, 4), (2, 6), (3, 5)):
        heads.enter(key, drives=False, shown=Seen(chunk, chunk * 100))
    assert heads.governing.chunk == 6
    heads.leave(2)
    assert heads.governing.chunk == 5


def test_with_nobody_there_nothing_was_seen() -> None:
    heads = Playheads()
    heads.enter(1, drives=True, shown=Seen(4, 400))
    heads.leave(1)
    assert heads.governing == NOTHING


def test_what_was_not_put_out_cannot_have_been_seen() -> None:
    heads = Playheads()
    heads.enter(1, drives=True, shown=NOTHING)
    with pytest.raises(CommandError) as caught:
        heads.advance(1, Seen(5, 0), newest=4)
    assert (caught.value.code, caught.value.field) == ("not_shown", "chunk")
    assert heads.governing == NOTHING


def test_a_playhead_never_runs_backwards() -> None:
    heads = Playheads()
    heads.enter(1, drives=True, shown=NOTHING)
    assert heads.advance(1, Seen(4, 400), newest=6)
    assert not heads.advance(1, Seen(2, 200), newest=6)
    assert heads.governing == Seen(4, 400)


def test_chunks_that_a_cut_has_dropped_count_for_nothing() -> None:
    heads = Playheads()
    heads.enter(1, drives=True, shown=Seen(3, 300))
    heads.cut(chunk=3, newest=5)
    assert not heads.advance(1, Seen(5, 500), newest=5)
    assert heads.governing.chunk == 3
    assert heads.advance(1, Seen(6, 600), newest=6)
    assert heads.governing.chunk == 6
