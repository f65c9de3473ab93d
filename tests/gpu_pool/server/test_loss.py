import asyncio
import logging
import os
import signal
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path

import pytest
import stub_model
from pool_rig import LIMIT_S, Viewer, is_alive, press, prompt, running, worker_pid
from stub_model import Fault, read_log
from waiting import until

from reverie.engine.emissions import ControlApplied, FramesOut
from reverie.gpu_pool import (
    ModelUnavailableError,
    Notification,
    RequestRefusedError,
    SessionLost,
    SessionRecovered,
    WorkerLost,
    WorkerLostError,
)
from reverie.gpu_pool.wire.session_messages import Pause, RestoreSnapshot, Resume, TakeSnapshot
from reverie.gpu_pool.wire.start_request import ForkOrigin

pytestmark = pytest.mark.timeout(150)  # processes start slowly on a busy machine


@pytest.fixture
def step_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "steps.jsonl"
    monkeypatch.setenv(stub_model.LOG_VARIABLE, str(path))
    return path


def after(notices: list[Notification], mark: Notification) -> list[FramesOut]:
    """Return the frames that came after a notice."""
    index = next(i for i, notice in enumerate(notices) if notice is mark)
    return [notice for notice in notices[index:] if isinstance(notice, FramesOut)]


def first_after(viewer: Viewer, mark: Notification, count: int = 1) -> FramesOut | None:
    frames = after(viewer.notices, mark)
    return frames[count - 1] if len(frames) >= count else None


async def goes_on(viewer: Viewer, mark: Notification, count: int) -> None:
    await viewer.until(lambda _: first_after(viewer, mark, count))


def assert_media_time_goes_on(frames: list[FramesOut]) -> None:
    for one, next_one in pairwise(frames):
        # Durations are rounded to microseconds, times are not.
        assert next_one.header.pts_us >= one.header.pts_us + len(one.frames) * (
            one.header.duration_us - 1
        )
        assert next_one.header.chunk > one.header.chunk


async def test_a_killed_worker_is_replaced_and_the_session_continues(step_log: Path) -> None:
    """Everything that acted still acts: the prompt, the key that is held, the world itself."""
    async with running("process") as pool:
        viewer, other = Viewer("a"), Viewer("b")
        async with viewer.watching(pool, step_ms=5) as lease, other.watching(pool, step_ms=5):
            lease.send(prompt("a", "c1", "a neon city"))
            lease.send(press("a", "c2", "left"))
            await viewer.hears(ControlApplied, 2)
            await viewer.hears(FramesOut, 12)
            pid = worker_pid(pool)
            os.kill(pid, signal.SIGKILL)
            lost = await viewer.hears(WorkerLost)
            assert "SIGKILL" in lost.reason or "connection" in lost.reason
            with pytest.raises(WorkerLostError):
                await lease.ask(Pause(0, "a"))
            assert not pool.ready
            lease.send(prompt("a", "c3", "the last word"))  # said while there is no worker
            recovered = await viewer.hears(SessionRecovered)
            await viewer.until(lambda _: first_after(viewer, recovered, 4))
            also = await other.hears(SessionRecovered)
            await other.until(lambda _: first_after(other, also, 4))
            assert not is_alive(pid)
            assert pool.ready
            assert pool.status["stub"].losses == 1

    before = [out for out in viewer.frames if out not in after(viewer.notices, lost)]
    frames = after(viewer.notices, recovered)
    assert after(viewer.notices, lost) == frames, "nothing comes between the loss and the recovery"
    assert_media_time_goes_on(viewer.frames)
    assert frames[0].header.discontinuity
    assert recovered.chunk in {out.header.chunk for out in before}
    world = stub_model.read_stamp(frames[0].frames[0])
    assert world.chunk == recovered.chunk + 1
    assert world.held == {"left"}
    assert stub_model.read_stamp(frames[3].frames[0]).prompt == stub_model.prompt_mark(
        "the last word"
    )
    receipts = [n.control for n in viewer.notices if isinstance(n, ControlApplied)]
    assert receipts == ["c1", "c2", "c3"], "each receipt once"
    marks = {stub_model.read_stamp(frame).session for out in other.frames for frame in out.frames}
    assert marks == {stub_model.session_mark("b")}


async def test_a_loss_finds_one_session_asking_one_paused_and_one_about_to_begin(
    step_log: Path,
) -> None:
    """The one learns of it at once, the other stays paused, the third begins in the new worker."""
    async with running("process", sessions=3) as pool:
        paused, asks, begins = Viewer("paused"), Viewer("asks"), Viewer("begins")
        async with paused.watching(pool) as lease:
            await paused.hears(FramesOut, 3)
            await lease.ask(Pause(0, "paused"))
            asking = await asks.open(pool, step_ms=60_000)
            await until(lambda: any(line.session == "asks" for line in read_log(step_log)))
            beginning = asyncio.ensure_future(begins.open(pool))
            await until(lambda: pool.status["stub"].busy == 3)

            os.kill(worker_pid(pool), signal.SIGKILL)
            with pytest.raises(WorkerLostError):
                await asking.ask(Pause(0, "asks"))
            await asks.hears(WorkerLost)
            await asking.release()
            assert pool.status["stub"].busy == 1, "a session without a worker is released at once"

            recovered = await paused.hears(SessionRecovered)
            begun = await beginning
            await begins.hears(FramesOut, 3)
            await begun.release()
            assert not after(paused.notices, recovered)
            await lease.ask(Resume(0, "paused"))
            await paused.until(lambda _: first_after(paused, recovered))


async def test_a_step_past_its_limit_is_ended_and_the_session_continues(
    mode: str, step_log: Path
) -> None:
    """A thread cannot be killed: its successor starts when the step has come to its end."""
    async with running(mode, step_limit_s=0.5) as pool:
        viewer = Viewer(f"hangs-{mode}")
        fault = {"fault": Fault.HANG, "fault_chunk": 2}
        hang_s = 1.5 if mode == "inline" else 3600
        async with viewer.watching(pool, **fault, hang_s=hang_s) as lease:
            lost = await viewer.hears(WorkerLost)
            assert "0.5 s" in lost.reason
            with pytest.raises(WorkerLostError):
                await lease.ask(Pause(0, viewer.session))
            recovered = await viewer.hears(SessionRecovered)
            await viewer.until(lambda _: first_after(viewer, recovered, 3))
    assert recovered.chunk <= 1
    assert_media_time_goes_on(viewer.frames)
    lines = [line for line in read_log(step_log) if line.session == viewer.session]
    fault_at = next(i for i, line in enumerate(lines) if line.event == "fault")
    if mode == "inline":
        assert lines[fault_at + 1].event == "end", "no step starts while the one that hangs runs"


async def test_a_worker_that_is_frozen_at_rest_is_replaced_and_a_new_session_is_let_in(
    step_log: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing runs, for the viewer is slow; so no step can be too long."""
    caplog.set_level(logging.INFO, "reverie.gpu_pool")
    async with running("process", sessions=2, step_limit_s=2) as pool:
        viewer, comes = Viewer("a"), Viewer("b")
        viewer.sees = False
        async with viewer.watching(pool) as lease:
            await viewer.hears(FramesOut, 1)
            await lease.ask(Pause(0, "a"))
            pid = worker_pid(pool)
            os.kill(pid, signal.SIGSTOP)
            lease.send(prompt("a", "c1", "a neon city"))
            async with asyncio.timeout(LIMIT_S), comes.watching(pool):
                await comes.hears(FramesOut)
            lost, _ = await viewer.hears(WorkerLost), await viewer.hears(SessionRecovered)
            assert "took no message for more than 2 s" in lost.reason
            assert not is_alive(pid)
            await lease.ask(Resume(0, "a"))
            assert (await viewer.hears(ControlApplied)).control == "c1"
            assert pool.status["stub"].losses == 1
    assert "worker of stub was replaced, and 1 sessions continue" in caplog.text


async def test_a_worker_without_sessions_that_is_frozen_is_replaced_too() -> None:
    async with running("process", step_limit_s=1) as pool:
        os.kill(worker_pid(pool), signal.SIGSTOP)
        await until(lambda: pool.status["stub"].losses == 1)
        await until(lambda: pool.ready)


async def test_a_worker_that_has_nothing_to_do_is_left_alone(mode: str) -> None:
    async with running(mode, step_limit_s=0.5) as pool, Viewer("a").watching(pool) as lease:
        await lease.ask(Pause(0, "a"))
        link = pool._supervisors["stub"]._link
        assert link is not None
        sent = link.sent
        await until(lambda: link.sent >= sent + 8)  # pings, of which each has been taken
        assert pool.status["stub"].losses == 0


async def test_a_snapshot_outlives_the_worker_that_it_was_taken_in(step_log: Path) -> None:
    async with running("process") as pool:
        viewer = Viewer("a")
        async with viewer.watching(pool) as lease:
            await viewer.hears(FramesOut, 3)
            await lease.ask(Pause(0, "a"))
            kept = await lease.ask(TakeSnapshot(0, "a", "here"))
            await lease.ask(Resume(0, "a"))
            await viewer.hears(FramesOut, 40)
            for loss in (1, 2):  # the second worker has it from the pool already
                os.kill(worker_pid(pool), signal.SIGKILL)
                await goes_on(viewer, await viewer.hears(SessionRecovered, loss), 12)
            await lease.ask(Pause(0, "a"))
            assert (await lease.ask(RestoreSnapshot(0, "a", "here"))).chunk == kept.chunk
            heard = len(viewer.frames)
            await lease.ask(Resume(0, "a"))
            out = await viewer.hears(FramesOut, heard + 1)
    assert out.header.discontinuity
    assert stub_model.read_stamp(out.frames[0]).chunk == kept.chunk + 1


async def test_a_fork_outlives_its_origin_and_its_worker(step_log: Path) -> None:
    async with running("process", sessions=2) as pool:
        first = Viewer("a")
        async with AsyncExitStack() as ends:
            parting = await ends.enter_async_context(first.watching(pool))
            await first.hears(FramesOut, 5)
            seen = first.frames[-1].header.chunk
            second = Viewer("b", origin=ForkOrigin("a", seen))
            await ends.enter_async_context(second.watching(pool))
            begun = await second.hears(FramesOut)
            assert begun.header.chunk == seen + 1
            await parting.release()
            os.kill(worker_pid(pool), signal.SIGKILL)
            recovered = await second.hears(SessionRecovered)
            assert recovered.chunk >= seen
            await goes_on(second, recovered, 3)
    stamps = [stub_model.read_stamp(out.frames[0]) for out in second.frames]
    assert {stamp.session for stamp in stamps[:1]} == {stub_model.session_mark("a")}
    assert_media_time_goes_on(second.frames)


async def test_a_session_that_is_not_there_cannot_be_forked() -> None:
    async with running("inline", sessions=2) as pool:
        with pytest.raises(RequestRefusedError, match="not open"):
            await Viewer("b", origin=ForkOrigin("a", None)).open(pool)
        assert pool.status["stub"].busy == 0


async def test_a_session_that_ends_its_worker_twice_fails_alone(step_log: Path) -> None:
    async with running("process", restart_pause_s=0.01) as pool:
        good, bad = Viewer("good"), Viewer("bad")
        async with good.watching(pool):
            await good.hears(FramesOut, 2)
            crash = {"fault": Fault.CRASH, "fault_always": 1, "fault_chunk": 1, "fault_unit": 2}
            async with bad.watching(pool, **crash) as lease:
                lost = await bad.hears(SessionLost)
                assert lost.code == "worker_lost"
                assert "exit code 3" in lost.message or "connection" in lost.message
                with pytest.raises(Exception, match="gone"):
                    await lease.ask(Pause(0, "bad"))
            recovered = await good.hears(SessionRecovered, 2)
            await good.until(lambda _: first_after(good, recovered, 3))
            assert pool.status["stub"].losses == 2
            assert pool.status["stub"].busy == 1
    assert not any(isinstance(notice, SessionLost) for notice in good.notices)
    assert isinstance(bad.notices[-1], SessionLost)
    assert_media_time_goes_on(good.frames)


async def test_workers_that_others_kill_cost_no_session_however_long_its_chunks_take(
    step_log: Path,
) -> None:
    """A step of it runs each time, and far fewer chunks lie between than make a session good."""
    async with running("process", sessions=2, restart_pause_s=0.01) as pool:
        slow, rests = Viewer("slow"), Viewer("rests")
        async with slow.watching(pool, step_ms=100), rests.watching(pool) as resting:
            await rests.hears(FramesOut, 1)
            await resting.ask(Pause(0, "rests"))
            await slow.hears(FramesOut, 1)
            for losses in range(1, 4):
                link = pool._supervisors["stub"]._link
                assert link is not None
                await until(lambda link=link: link.host.heartbeat.suspects())  # type: ignore[misc]
                os.kill(worker_pid(pool), signal.SIGKILL)
                await slow.hears(WorkerLost, losses)
                await slow.hears(SessionRecovered, losses)
                await rests.hears(SessionRecovered, losses)
            await goes_on(slow, slow.notices[-1], 2)
    notices = [*slow.notices, *rests.notices]
    assert not any(isinstance(notice, SessionLost) for notice in notices)
    assert slow.frames[-1].header.chunk < 16


async def test_a_model_whose_worker_dies_too_often_is_given_up(
    step_log: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running("process", restarts=0) as pool:
        viewer = Viewer("last")
        lease = await viewer.open(pool)
        await viewer.hears(FramesOut)
        os.kill(worker_pid(pool), signal.SIGKILL)
        lost = await viewer.hears(SessionLost)
        assert lost.code == "model_unavailable"
        words = "model stub is given up after 0 restarts within 600 s: "
        with pytest.raises(ModelUnavailableError, match=words):
            await Viewer("next").open(pool)
        assert not pool.ready
        assert pool.status["stub"].failure.startswith(words)
        [record] = [record for record in caplog.records if record.levelno >= logging.ERROR]
        assert record.getMessage().startswith(words)
        await lease.release()


async def test_a_session_is_not_recovered_under_other_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running("process") as pool:
        viewer = Viewer("a")
        async with viewer.watching(pool, step_ms=5):
            await viewer.hears(FramesOut, 4)
            monkeypatch.setenv(stub_model.WEIGHTS_VARIABLE, "stub-2")  # they are put in its place
            os.kill(worker_pid(pool), signal.SIGKILL)
            lost = await viewer.hears(SessionLost)
            assert lost.code == "weights_changed"
            assert "stub-1" in lost.message
            assert "stub-2" in lost.message
        monkeypatch.delenv(stub_model.WEIGHTS_VARIABLE)
        other = Viewer("b")
        async with other.watching(pool, step_ms=5):  # a session that comes now has the new ones
            await other.hears(FramesOut, 2)
