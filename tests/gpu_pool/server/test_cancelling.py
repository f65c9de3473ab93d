import asyncio
import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from pool_rig import Viewer
from stub_model import LogLine, read_log
from waiting import until

from reverie.engine.emissions import FramesOut
from reverie.gpu_pool import Pool, WorkerHandle
from reverie.gpu_pool.wire.session_messages import Pause

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def sessions() -> int:
    return 1


def steps(log: Path, prefix: str) -> list[LogLine]:
    return [line for line in read_log(log) if line.session.startswith(prefix)]


def mid_step(log: Path, session: str) -> bool:
    lines = steps(log, session)
    return bool(lines) and lines[-1].event == "start"


def assert_one_at_a_time(lines: list[LogLine]) -> None:
    """Every start is followed by its own end, before the next start."""
    for one, next_one in pairwise(lines):
        assert (one.event, next_one.event) in {("start", "end"), ("end", "start")}
        if one.event == "start":
            assert (one.session, one.unit) == (next_one.session, next_one.unit)


async def test_a_slot_is_not_given_again_while_its_step_still_computes(
    pool: Pool, step_log: Path
) -> None:
    """C04: start, cancel in the middle of a step, start again at once; 20 times."""
    for index in range(20):
        viewer = Viewer(f"c04-{index}")
        task = asyncio.ensure_future(viewer.hold(pool, step_ms=30))
        await until(lambda: mid_step(step_log, viewer.session))  # noqa: B023
        task.cancel()
    last = Viewer("c04-last")
    async with last.watching(pool):
        await last.hears(FramesOut)
    lines = steps(step_log, "c04")
    assert_one_at_a_time(lines)
    by_session = [line.session for line in lines]
    assert by_session == sorted(by_session, key=by_session.index), "a session came back"


async def test_after_a_cancel_nothing_runs_for_longer_than_one_step(
    pool: Pool, step_log: Path
) -> None:
    viewer = Viewer("one-step")
    task = asyncio.ensure_future(viewer.hold(pool, step_ms=50))
    await until(lambda: mid_step(step_log, "one-step"))
    before = len(steps(step_log, "one-step"))
    task.cancel()
    await until(lambda: pool.status["stub"].busy == 0)
    assert len(steps(step_log, "one-step")) <= before + 1
    assert steps(step_log, "one-step")[-1].event == "end"


async def test_an_ask_that_is_cancelled_leaves_the_session_as_it_is(pool: Pool) -> None:
    viewer = Viewer("a")
    async with viewer.watching(pool, step_ms=10) as lease:
        await viewer.hears(FramesOut)
        task = asyncio.ensure_future(lease.ask(Pause(0, "a")))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait((task,))
        await lease.ask(Pause(0, "a"))
        assert not pool._supervisors["stub"].slot_manager._pending_requests


async def test_cancelling_at_any_moment_leaves_nothing_behind(pool: Pool, step_log: Path) -> None:
    dice = random.Random(1)

    async def visit(viewer: Viewer) -> None:
        async with viewer.watching(pool, step_ms=2) as lease:
            await viewer.hears(FramesOut)
            await lease.ask(Pause(0, viewer.session))

    for index in range(40):
        task = asyncio.ensure_future(visit(Viewer(f"any-{index}")))
        for _ in range(dice.randrange(30)):
            await asyncio.sleep(0.001 * dice.random())
        task.cancel()
        await asyncio.wait((task,))
    await until(lambda: pool.status["stub"].busy == 0)
    assert_one_at_a_time(steps(step_log, "any"))


async def run_b(pool: Pool) -> list[FramesOut]:
    viewer = Viewer("b")
    async with viewer.watching(pool):
        await viewer.hears(FramesOut, 3)
    return viewer.frames[:3]


def assert_equal(frames: list[FramesOut], expected: list[FramesOut]) -> None:
    for one, other in zip(frames, expected, strict=True):
        assert (one.header.chunk, one.header.pts_us, one.header.discontinuity) == (
            other.header.chunk,
            other.header.pts_us,
            other.header.discontinuity,
        )
        assert np.array_equal(one.frames, other.frames)


async def test_one_abort_does_not_touch_the_next_session(pool: Pool, step_log: Path) -> None:
    """C23: A is aborted while queued, in the middle of a step, twice, and when it has finished."""
    expected = await run_b(pool)

    async with Viewer("holder").watching(pool):
        queued = asyncio.ensure_future(Viewer("a-queued").open(pool))
        await until(lambda: pool.status["stub"].waiting == 1)
        queued.cancel()
    assert_equal(await run_b(pool), expected)

    task = asyncio.ensure_future(Viewer("a-mid").hold(pool, step_ms=30))
    await until(lambda: mid_step(step_log, "a-mid"))
    task.cancel()
    assert_equal(await run_b(pool), expected)

    lease = await Viewer("a-twice").open(pool, step_ms=30)
    await until(lambda: mid_step(step_log, "a-twice"))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(lease.release())
        tasks.create_task(lease.release())
    assert_equal(await run_b(pool), expected)

    finished: WorkerHandle = await Viewer("a-finished").open(pool)
    await finished.release()
    await finished.release()
    assert_equal(await run_b(pool), expected)
