"""A text encoder that takes its time holds up no pictures, in a thread and in a process."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import slow_reader
from pool_rig import Viewer, press, prompt, running, worker_pid
from slow_reader import BROKEN, Gate
from stub_model import prompt_mark, read_stamp
from waiting import until

from reverie.engine.emissions import (
    ControlApplied,
    ControlFailed,
    ControlSuperseded,
    FaultCode,
    FramesOut,
    StepFailed,
)
from reverie.engine.inputs import ControlId
from reverie.gpu_pool import Pool, SessionRecovered, StartRequest
from reverie.gpu_pool.wire.notifications import Notification
from reverie.gpu_pool.wire.session_messages import Reset

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(mode: str) -> AsyncIterator[Pool]:
    async with running(mode, family=slow_reader.LOCATION, sessions=3) as pool:
        yield pool


async def goes_on(viewer: Viewer, chunks: int = 3) -> None:
    """Wait for so many more chunks."""
    await viewer.hears(FramesOut, len(viewer.frames) + chunks)


def shown(viewer: Viewer, text: str) -> bool:
    """Whether the newest frame was made under a prompt."""
    return read_stamp(viewer.frames[-1].frames[-1]).prompt == prompt_mark(text)


async def fate(viewer: Viewer, control: str) -> Notification:
    """Wait for what becomes of a control."""

    def found(notices: list[Notification]) -> Notification | None:
        fates = ControlApplied | ControlSuperseded | ControlFailed
        told = [each for each in notices if isinstance(each, fates) and each.control == control]
        return told[0] if told else None

    return await viewer.until(found)


async def begin(viewer: Viewer, pool: Pool, text: str) -> None:
    """Open a session with a prompt of its own."""
    opening = StartRequest(viewer.session, "stub", "world", 7, text)
    viewer.lease = await pool.lease(opening, viewer)


async def test_pictures_continue_while_a_prompt_is_read(pool: Pool, tmp_path: Path) -> None:
    gate, mine, other = Gate(tmp_path), Viewer("a"), Viewer("b")
    async with mine.watching(pool) as lease, other.watching(pool):
        lease.send(prompt("a", "p", gate.prompt))
        await gate.reached()
        await goes_on(mine)
        await goes_on(other)
        lease.send(press("a", "k", "up"))
        assert isinstance(await fate(mine, "k"), ControlApplied)
        assert not [each for each in mine.notices if getattr(each, "control", "") == "p"]
        gate.open()
        assert isinstance(await fate(mine, "p"), ControlApplied)
        await goes_on(mine, 1)
        assert shown(mine, gate.prompt)


async def test_what_waits_gives_way_to_the_newest_and_what_is_read_does_not(
    pool: Pool, tmp_path: Path
) -> None:
    gate, viewer = Gate(tmp_path), Viewer("a")
    async with viewer.watching(pool) as lease:
        lease.send(prompt("a", "first", gate.prompt))
        await gate.reached()
        lease.send(prompt("a", "second", "a city"))
        lease.send(prompt("a", "third", "a desert"))
        second = await fate(viewer, "second")
        assert second == ControlSuperseded("a", ControlId("second"), ControlId("third"))
        gate.open()
        first, third = await fate(viewer, "first"), await fate(viewer, "third")
        assert isinstance(third, ControlApplied)
        if isinstance(first, ControlSuperseded):  # both were read before a step took the first
            assert first.by == "third"
        await goes_on(viewer, 1)
        assert shown(viewer, "a desert")


async def test_a_session_begins_when_its_prompt_is_read_and_holds_up_no_other(
    pool: Pool, tmp_path: Path
) -> None:
    gate, mine, other = Gate(tmp_path), Viewer("a"), Viewer("b")
    async with other.watching(pool):
        await begin(mine, pool, gate.prompt)
        await gate.reached()
        await goes_on(other)
        assert not mine.frames
        gate.open()
        await mine.hears(FramesOut)
        assert shown(mine, gate.prompt)
        assert mine.lease is not None
        await mine.lease.release()


async def test_a_session_that_is_reset_begins_with_the_prompt_that_is_read(
    pool: Pool, tmp_path: Path
) -> None:
    """C08, where prompts are read ahead."""
    gate, viewer = Gate(tmp_path), Viewer("a")
    async with viewer.watching(pool) as lease:
        await viewer.hears(FramesOut)
        lease.send(prompt("a", "p", gate.prompt))
        await gate.reached()
        await lease.ask(Reset(0, "a"))
        before = len(viewer.frames)
        gate.open()
        assert isinstance(await fate(viewer, "p"), ControlApplied)
        await goes_on(viewer, 1)
        after = viewer.frames[before]
        assert read_stamp(after.frames[0]).prompt == prompt_mark(gate.prompt)
        assert after.header.discontinuity


async def test_a_prompt_that_cannot_be_read_changes_nothing(pool: Pool) -> None:
    viewer = Viewer("a")
    async with viewer.watching(pool) as lease:
        await viewer.hears(FramesOut)
        lease.send(prompt("a", "p", BROKEN))
        failed = await fate(viewer, "p")
        assert isinstance(failed, ControlFailed)
        assert (failed.code, failed.in_effect) == (FaultCode.PROMPT_FAILED, "a frozen lake")
        await goes_on(viewer, 2)
        assert shown(viewer, "a frozen lake")


async def test_a_session_whose_opening_prompt_cannot_be_read_ends_with_a_reason(
    pool: Pool,
) -> None:
    viewer, other = Viewer("a"), Viewer("b")
    async with other.watching(pool):
        await begin(viewer, pool, BROKEN)
        failed = await viewer.hears(StepFailed)
        assert (failed.code, failed.fatal) == (FaultCode.PROMPT_FAILED, True)
        assert viewer.lease is not None
        await viewer.lease.release()
        await goes_on(other)


async def test_a_session_may_leave_while_its_prompt_is_read(pool: Pool, tmp_path: Path) -> None:
    gate, viewer = Gate(tmp_path), Viewer("a")
    async with viewer.watching(pool) as lease:
        lease.send(prompt("a", "p", gate.prompt))
        await gate.reached()
    again = Viewer("a")
    async with again.watching(pool):
        gate.open()
        await again.hears(FramesOut, 2)
    assert not [each for each in again.notices if getattr(each, "control", "") == "p"]


async def test_a_lost_worker_does_not_lose_the_prompt_that_it_was_reading(
    mode: str, pool: Pool, tmp_path: Path
) -> None:
    if mode == "inline":
        return  # a thread cannot be killed
    async with running(mode, family=slow_reader.LOCATION, sessions=1) as own:
        gate, viewer = Gate(tmp_path), Viewer("a")
        async with viewer.watching(own) as lease:
            await viewer.hears(FramesOut)
            lease.send(prompt("a", "p", gate.prompt))
            await gate.reached()
            os.kill(worker_pid(own), signal.SIGKILL)
            await viewer.hears(SessionRecovered)
            await gate.reached()
            gate.open()
            assert isinstance(await fate(viewer, "p"), ControlApplied)
        await until(lambda: own.status["stub"].busy == 0)
