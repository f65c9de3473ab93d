from dataclasses import replace
from pathlib import Path

import numpy as np
import odd_models
import pytest
import stub_model
from pool_rig import Viewer, press, prompt
from waiting import until

from reverie.engine.emissions import ControlApplied, FramesOut, SnapshotOut
from reverie.gpu_pool import (
    LeaseEndedError,
    Pool,
    RequestRefusedError,
    SessionExistsError,
    StartRequest,
    UnknownDeploymentError,
)
from reverie.gpu_pool.wire.session_messages import (
    Interrupt,
    Pause,
    Reset,
    RestoreSnapshot,
    Resume,
    Rewind,
    SetWatched,
    TakeSnapshot,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_session_is_seen_and_heard(pool: Pool) -> None:
    viewer = Viewer("a")
    async with viewer.watching(pool) as lease:
        await viewer.hears(FramesOut, 3)
        lease.send(prompt("a", "c1", "a neon city"))
        applied = await viewer.hears(ControlApplied)
        await viewer.hears(FramesOut, applied.chunk + 3)

    assert [out.header.chunk for out in viewer.frames] == list(range(len(viewer.frames)))
    for out in viewer.frames:
        stamps = [stub_model.read_stamp(frame) for frame in out.frames]
        text = "a neon city" if out.header.chunk >= applied.chunk else "a frozen lake"
        assert [stamp.frame for stamp in stamps] == list(range(12))
        assert {stamp.chunk for stamp in stamps} == {out.header.chunk}
        assert {stamp.session for stamp in stamps} == {stub_model.session_mark("a")}
        assert {stamp.prompt for stamp in stamps} == {stub_model.prompt_mark(text)}
    assert not any(isinstance(notice, SnapshotOut) for notice in viewer.notices)


async def test_requests_are_answered_and_refusals_change_nothing(pool: Pool) -> None:
    viewer = Viewer("a")
    async with viewer.watching(pool) as lease:
        await viewer.hears(FramesOut, 2)
        paused = await lease.ask(Pause(0, "a"))
        heard = len(viewer.frames)
        assert paused.chunk == viewer.frames[-1].header.chunk
        with pytest.raises(RequestRefusedError) as refused:
            await lease.ask(Rewind(0, "a", 999))
        assert refused.value.code == "chunk_not_kept"
        with pytest.raises(RequestRefusedError):
            await lease.ask(RestoreSnapshot(0, "a", "nothing"))
        assert (await lease.ask(TakeSnapshot(0, "a", "here"))).chunk == paused.chunk
        assert (await lease.ask(Interrupt(0, "a", seen=0))).chunk == 0
        assert (await lease.ask(RestoreSnapshot(0, "a", "here"))).chunk == paused.chunk
        assert (await lease.ask(Reset(0, "a"))).chunk == -1
        assert len(viewer.frames) == heard, "a paused session puts nothing out"
        await lease.ask(Resume(0, "a"))
        out = await viewer.hears(FramesOut, heard + 1)
        assert out.header.discontinuity
        assert stub_model.read_stamp(out.frames[0]).chunk == 0


async def test_nothing_is_heard_after_the_release(pool: Pool, step_log: Path) -> None:
    viewer = Viewer("drop")
    lease = await viewer.open(pool, step_ms=30)
    await until(lambda: decoding(step_log, "drop"))  # so frames will come before the end
    await lease.release()
    await lease.release()
    assert not viewer.notices
    assert not decoding(step_log, "drop")
    lease.send(press("drop", "c", "left"))
    with pytest.raises(LeaseEndedError):
        await lease.ask(Pause(0, "drop"))


def decoding(log: Path, session: str) -> bool:
    """Tell whether the session's first frames are being made."""
    lines = [line for line in stub_model.read_log(log) if line.session == session]
    return bool(lines) and (lines[-1].event, lines[-1].kind) == ("start", "decode")


async def test_frames_belong_to_the_session_for_good(pool: Pool) -> None:
    viewer = Viewer("a")
    async with viewer.watching(pool, fault=stub_model.Fault.REUSE_BUFFER):
        await viewer.hears(FramesOut, 20)
    for out in viewer.frames:
        assert {stub_model.read_stamp(frame).chunk for frame in out.frames} == {out.header.chunk}


async def test_a_session_without_a_viewer_stops_until_one_comes(pool: Pool) -> None:
    viewer = Viewer("a")
    async with viewer.watching(pool) as lease:
        await viewer.hears(FramesOut, 2)
        lease.send(SetWatched("a", False))
        stopped = await lease.ask(Pause(0, "a"))
        await lease.ask(Resume(0, "a"))
        # At most the chunk in progress comes out; then generation stops.
        lease.send(SetWatched("a", True))
        out = await viewer.until(
            lambda _: next((o for o in viewer.frames if o.header.chunk == stopped.chunk + 3), None)
        )
        assert [o.header.chunk for o in viewer.frames] == list(range(out.header.chunk + 1))


async def test_two_sessions_share_a_worker_and_never_their_pictures(pool: Pool) -> None:
    red, blue = Viewer("red"), Viewer("blue")
    async with red.watching(pool), blue.watching(pool):
        await red.hears(FramesOut, 20)
        await blue.hears(FramesOut, 20)
    for viewer in (red, blue):
        marks = {stub_model.read_stamp(f).session for out in viewer.frames for f in out.frames}
        assert marks == {stub_model.session_mark(viewer.session)}


async def test_other_sessions_change_no_pixel(pool: Pool) -> None:
    alone, neighbour, accompanied = Viewer("a"), Viewer("b"), Viewer("a")
    async with alone.watching(pool):
        await alone.hears(FramesOut, 4)
    async with neighbour.watching(pool), accompanied.watching(pool):
        await accompanied.hears(FramesOut, 4)
    for one, other in zip(alone.frames[:4], accompanied.frames[:4], strict=True):
        assert np.array_equal(one.frames, other.frames)
        assert (one.header.chunk, one.header.pts_us, one.header.step) == (
            other.header.chunk,
            other.header.pts_us,
            other.header.step,
        )


async def test_what_cannot_begin_is_refused_and_takes_up_nothing(pool: Pool) -> None:
    viewer = Viewer("a")
    opening = StartRequest("a", "stub", "world", 1)
    with pytest.raises(UnknownDeploymentError, match="served: stub"):
        await pool.lease(replace(opening, model="nothing"), viewer)
    with pytest.raises(RequestRefusedError) as refused:
        await pool.lease(replace(opening, program="nothing"), viewer)
    assert refused.value.code == "bad_program"
    with pytest.raises(RequestRefusedError, match="an unlucky seed") as refused:
        await pool.lease(replace(opening, seed=odd_models.UNLUCKY_SEED), viewer)
    assert refused.value.code == "open_failed"
    assert pool.status["stub"].busy == 0
    async with viewer.watching(pool):
        await viewer.hears(FramesOut)


async def test_a_session_that_is_live_is_not_begun_again(pool: Pool) -> None:
    viewer, double = Viewer("a"), Viewer("a")
    async with viewer.watching(pool):
        with pytest.raises(SessionExistsError):
            await double.open(pool)
        await viewer.hears(FramesOut, 3)
    assert not double.notices


async def test_a_sink_that_raises_harms_no_other_session(
    pool: Pool, caplog: pytest.LogCaptureFixture
) -> None:
    viewer = Viewer("a")

    def broken(notice: object) -> None:
        raise ValueError("a broken sink")

    lease = await pool.lease(StartRequest("b", "stub", "world", 1), broken)
    async with viewer.watching(pool):
        await viewer.hears(FramesOut, 3)
    await lease.release()
    assert "session b failed to take what it was told" in caplog.text
