"""Two loops of one session that are seen and heard, with chunks of different lengths."""

from typing import Any

import pytest
from uneven_model import UnevenFamily, short_pictures, value_of
from worker_session_rig import WorkerSessionRig

from reverie.engine.emissions import FramesOut, SamplesOut
from reverie.engine.errors import ChunkNotKeptError
from reverie.gpu_pool.wire.session_messages import OpenSession, PlayheadMoved
from reverie.gpu_pool.wire.start_request import ForkOrigin
from reverie.gpu_pool.worker.worker_session import WorkerSession

SECOND = 1_000_000


def film(family: UnevenFamily, history: int = 3) -> tuple[WorkerSessionRig, WorkerSession]:
    """Open a session whose viewer says nothing by itself."""
    rig = WorkerSessionRig(family, history=history)
    rig.seen = False
    return rig, rig.open(program="film")


def ends_us(rig: WorkerSessionRig) -> tuple[int, int]:
    """Return up to where pictures and sound were put out."""
    pictures = [out.end_us for out in rig.of("a", FramesOut)]
    sounds = [out.pts_us + out.duration_us for out in rig.of("a", SamplesOut)]
    return max(pictures, default=0), max(sounds, default=0)


def rest(rig: WorkerSessionRig) -> None:
    """Step until nothing can run, however long one waits."""
    idle = 0
    while idle < 20:
        idle = 0 if rig.step() else idle + 1
        rig.clock.now_us += 5000


def watch(rig: WorkerSessionRig, seconds: float) -> None:
    """Have a viewer watch at the media's own speed, and report pictures as their chunks end."""
    told: set[int] = set()
    start_us = rig.clock.now_us
    while rig.clock.now_us < start_us + seconds * SECOND:
        if not rig.step():
            rig.clock.now_us += 5000
        shown_us = rig.clock.now_us - start_us
        for out in rig.of("a", FramesOut):
            if out.end_us <= shown_us and out.header.chunk not in told:
                told.add(out.header.chunk)
                moved = PlayheadMoved("a", out.header.chunk, "pictures")
                rig.session_table["a"].seen(moved, rig.clock.now_us)


@pytest.mark.parametrize(
    "family", [UnevenFamily(), short_pictures(), UnevenFamily(sound_leads=True)]
)
def test_neither_loop_runs_ahead_of_a_viewer_who_sees_nothing(family: UnevenFamily) -> None:
    rig, _ = film(family)
    rest(rig)
    assert ends_us(rig) == (family.picture_s * SECOND, 2 * SECOND)  # sound goes as far, no further


@pytest.mark.parametrize(
    "family", [UnevenFamily(), short_pictures(), UnevenFamily(sound_leads=True)]
)
def test_both_loops_keep_within_a_chunk_of_their_own_of_the_viewer(family: UnevenFamily) -> None:
    rig, _ = film(family)
    watch(rig, 12)
    pictures_us, sounds_us = ends_us(rig)
    assert 12 * SECOND <= pictures_us <= (12 + 2 * family.picture_s) * SECOND
    assert 12 * SECOND <= sounds_us <= (12 + 4) * SECOND


def test_what_is_seen_of_one_loop_counts_for_the_other_by_its_media_time() -> None:
    rig, worker_session = film(UnevenFamily())
    rest(rig)
    worker_session.seen(PlayheadMoved("a", 0, "pictures"), rig.clock.now_us)
    rest(rig)
    assert ends_us(rig) == (4 * SECOND, 4 * SECOND)


@pytest.mark.parametrize("sound_leads", [False, True])
def test_an_interrupt_drops_what_was_not_seen_of_both(sound_leads: bool) -> None:
    rig, worker_session = film(UnevenFamily(sound_leads=sound_leads))
    rest(rig)
    worker_session.seen(PlayheadMoved("a", 0, "pictures"), rig.clock.now_us)
    rest(rig)
    before = len(rig.heard["a"])
    worker_session.interrupt(0, None, "pictures")
    rest(rig)
    picture, sound = first_after(rig, before)
    assert (value_of(picture), value_of(sound)) == (1, 5)  # what follows 2 s of each
    assert picture.header.pts_us == sound.pts_us == 4 * SECOND
    assert picture.header.discontinuity
    assert sound.discontinuity


def first_after(rig: WorkerSessionRig, before: int) -> tuple[Any, Any]:
    """Return the first pictures and the first sound since then."""
    heard = rig.heard["a"][before:]
    picture = next(out for out in heard if isinstance(out, FramesOut))
    sound = next(out for out in heard if isinstance(out, SamplesOut))
    return picture, sound


def test_an_interrupt_of_one_loop_leaves_the_other_and_says_where_that_one_is() -> None:
    rig, worker_session = film(short_pictures())
    rest(rig)
    position = worker_session.interrupt(None, "pictures", "pictures")
    assert (position.chunk, position.pts_us) == (-1, 400_000)
    assert worker_session.driver("sounds").position.chunk == 0


@pytest.mark.parametrize("chunk", [0, 1, 2])
def test_a_rewind_takes_both_to_the_same_media_time(chunk: int) -> None:
    rig, worker_session = film(UnevenFamily())
    watch(rig, 7.5)
    before = len(rig.heard["a"])
    assert worker_session.rewind(chunk).chunk == chunk
    rest(rig)
    picture, sound = first_after(rig, before)
    assert value_of(picture) == chunk + 1
    assert value_of(sound) == (chunk + 1) * 5  # five of its chunks to one with pictures
    assert picture.header.pts_us == sound.pts_us


def test_a_rewind_names_a_chunk_of_the_loop_that_leads() -> None:
    rig, worker_session = film(UnevenFamily(sound_leads=True), history=12)
    watch(rig, 4.5)
    before = len(rig.heard["a"])
    worker_session.rewind(5)  # ends at 2.4 s
    rest(rig)
    picture, sound = first_after(rig, before)
    assert (value_of(picture), value_of(sound)) == (1, 6)
    assert picture.header.pts_us == sound.pts_us


def test_a_rewind_that_one_loop_cannot_follow_changes_nothing() -> None:
    rig, worker_session = film(short_pictures(), history=3)
    watch(rig, 7.5)
    sounds = worker_session.driver("sounds")
    worker_session.rewind(worker_session.position.chunk - 1)
    rest(rig)
    state_chunks = (worker_session.state_chunks, sounds.position)
    with pytest.raises(ChunkNotKeptError):
        worker_session.rewind(0)
    assert (worker_session.state_chunks, sounds.position) == state_chunks


def test_while_paused_so_much_sound_comes_as_goes_with_the_pictures() -> None:
    rig, worker_session = film(UnevenFamily())
    worker_session.pause()
    rest(rig)
    assert ends_us(rig) == (0, 0)
    worker_session.advance(1)
    rest(rig)
    assert ends_us(rig) == (2 * SECOND, 2 * SECOND)


def test_a_snapshot_keeps_both_as_they_were_at_one_media_time() -> None:
    rig, worker_session = film(UnevenFamily())
    watch(rig, 3)
    kept = worker_session.leading.media_us(None) // SECOND
    worker_session.snapshot("here")
    watch(rig, 6)
    before = len(rig.heard["a"])
    worker_session.restore("here")
    rest(rig)
    picture, sound = first_after(rig, before)
    assert value_of(picture) * 2 == kept
    assert abs(value_of(sound) * 0.4 - kept) <= 0.4
    assert picture.header.pts_us == sound.pts_us


def test_a_fork_continues_both_from_one_media_time() -> None:
    rig, worker_session = film(UnevenFamily())
    watch(rig, 5)
    message = OpenSession(9, "b", "film", 7, "", origin=ForkOrigin("a", 0, seen_of="pictures"))
    rig.model.admission.admit("b", rig.model.loops("film"))
    rig.session_table["b"] = other = WorkerSession(rig.model, message, worker_session)
    assert other.driver("pictures").state.chunks == 1
    assert other.driver("sounds").state.chunks == 5
    times = {other.driver(name).position.pts_us for name in ("pictures", "sounds")}
    assert len(times) == 1
