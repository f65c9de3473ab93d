"""Which playhead counts, and what cannot have been seen."""

import pytest

from reverie.models.contract.spec import StreamKind
from reverie.sessions.protocol.errors import CommandError
from reverie.sessions.state.playheads import NOTHING, Playheads, SeenPosition
from reverie.sessions.state.prompt_memory import PromptMemory
from reverie.sessions.state.session_state import SessionId, SessionState, StreamState


def test_the_driver_sets_the_pace_however_far_viewers_are() -> None:
    heads = Playheads()
    heads.enter(1, drives=True, shown=NOTHING)
    heads.enter(2, drives=False, shown=NOTHING)
    heads.advance(2, SeenPosition(9, 900), newest=9)
    heads.advance(1, SeenPosition(3, 300), newest=9)
    assert heads.governing == SeenPosition(3, 300)


def test_without_a_driver_the_viewer_furthest_on_sets_it() -> None:
    heads = Playheads()
    for key, chunk in ((1, 4), (2, 6), (3, 5)):
        heads.enter(key, drives=False, shown=SeenPosition(chunk, chunk * 100))
    assert heads.governing.chunk == 6
    heads.leave(2)
    assert heads.governing.chunk == 5


def test_without_a_client_nothing_was_seen() -> None:
    heads = Playheads()
    heads.enter(1, drives=True, shown=SeenPosition(4, 400))
    heads.leave(1)
    assert heads.governing == NOTHING


def test_what_was_not_put_out_cannot_have_been_seen() -> None:
    heads = Playheads()
    heads.enter(1, drives=True, shown=NOTHING)
    with pytest.raises(CommandError) as caught:
        heads.advance(1, SeenPosition(5, 0), newest=4)
    assert (caught.value.code, caught.value.field) == ("not_shown", "chunk")
    assert heads.governing == NOTHING


def test_a_playhead_never_runs_backwards() -> None:
    heads = Playheads()
    heads.enter(1, drives=True, shown=NOTHING)
    assert heads.advance(1, SeenPosition(4, 400), newest=6)
    assert not heads.advance(1, SeenPosition(2, 200), newest=6)
    assert heads.governing == SeenPosition(4, 400)


def test_chunks_that_a_cut_has_dropped_count_for_nothing() -> None:
    heads = Playheads()
    heads.enter(1, drives=True, shown=SeenPosition(3, 300))
    heads.cut({"": 3}, {"": 5})
    assert not heads.advance(1, SeenPosition(5, 500), newest=5)
    assert heads.governing.chunk == 3
    assert heads.advance(1, SeenPosition(6, 600), newest=6)
    assert heads.governing.chunk == 6


def test_chunks_of_two_loops_are_compared_by_their_media_time() -> None:
    heads = Playheads()
    heads.enter(1, drives=True, shown=NOTHING)
    assert heads.advance(1, SeenPosition(7, 700, "short"), newest=7)
    assert heads.advance(1, SeenPosition(1, 900, "long"), newest=1)
    assert heads.governing == SeenPosition(1, 900, "long")
    assert not heads.advance(1, SeenPosition(8, 800, "short"), newest=9)
    assert heads.advance(1, SeenPosition(9, 1000, "short"), newest=9)
    assert heads.governing == SeenPosition(9, 1000, "short")


def test_a_cut_of_a_loop_with_short_chunks_does_not_outlaw_those_of_a_long_one() -> None:
    heads = Playheads()
    heads.enter(1, drives=True, shown=SeenPosition(3, 300, "pictures"))
    heads.cut({"pictures": 3, "sounds": 20}, {"pictures": 4, "sounds": 40})
    assert heads.governing.chunk == 3
    assert not heads.advance(1, SeenPosition(4, 400, "pictures"), newest=5)
    assert heads.advance(1, SeenPosition(5, 500, "pictures"), newest=5)


def test_a_playhead_without_a_loop_is_of_the_one_whose_chunk_holds_its_time() -> None:
    state = SessionState(SessionId("s"), "o", "m", "p", 0, PromptMemory(100))
    for name, chunk_us in (("short", 100), ("long", 500)):
        state.streams[name] = stream = StreamState(name, StreamKind.VIDEO, 10.0, name)
        for chunk in range(3):
            stream.put_out(chunk, chunk * chunk_us, (chunk + 1) * chunk_us)
    state.streams["sound"] = StreamState("sound", StreamKind.AUDIO, 10.0, "heard")
    assert state.reported == ("short", "long")
    assert state.seen(1, 150).loop == "short"
    assert state.seen(1, 999).loop == "long"
    assert state.seen(7, 0).loop == "short"
    assert state.chunk == 2
