import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from pool_rig import Viewer
from waiting import until

from reverie.engine.emissions import FramesOut
from reverie.gpu_pool import Pool, PoolFullError, WorkerHandle

pytestmark = pytest.mark.asyncio(loop_scope="module")

LINE = 3


@pytest_asyncio.fixture(loop_scope="module")
async def holders(pool: Pool) -> AsyncIterator[list[WorkerHandle]]:
    """Both slots are taken."""
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(Viewer(name).watching(pool))
            for name in ("holder-1", "holder-2")
        ]


async def queue_up(
    pool: Pool, tasks: asyncio.TaskGroup, *viewers: Viewer
) -> list[asyncio.Task[WorkerHandle]]:
    """Have viewers stand in line, in this order."""
    waiting = []
    for viewer in viewers:
        before = pool.status["stub"].waiting
        waiting.append(tasks.create_task(viewer.open(pool)))
        await until(lambda: pool.status["stub"].waiting == before + 1)  # noqa: B023
    return waiting


async def test_sessions_beyond_the_slots_wait_and_come_in_order(
    pool: Pool, holders: list[WorkerHandle]
) -> None:
    first, second = Viewer("first"), Viewer("second")
    async with asyncio.TaskGroup() as tasks:
        waiting = await queue_up(pool, tasks, first, second)
        assert (first.positions, second.positions) == ([1], [2])
        await holders[0].release()
        await (await waiting[0]).release()
        await (await waiting[1]).release()
    assert (first.positions, second.positions) == ([1], [2, 1])


async def test_a_session_that_finds_a_free_slot_is_told_no_position(pool: Pool) -> None:
    viewer = Viewer("a")
    async with viewer.watching(pool):
        assert viewer.positions == []


async def test_beyond_the_queue_sessions_are_told_when_to_try_again(
    pool: Pool, holders: list[WorkerHandle]
) -> None:
    async with asyncio.TaskGroup() as tasks:
        waiting = await queue_up(pool, tasks, *(Viewer(f"w{index}") for index in range(LINE)))
        with pytest.raises(PoolFullError) as full:
            await Viewer("late").open(pool)
        assert full.value.retry_after_s > 0
        for task in waiting:
            task.cancel()
    assert pool.status["stub"].waiting == 0


async def test_a_request_cancelled_in_the_queue_leaves_it_and_the_others_move_up(
    pool: Pool, holders: list[WorkerHandle]
) -> None:
    gone, stays = Viewer("gone"), Viewer("stays")
    async with asyncio.TaskGroup() as tasks:
        waiting = await queue_up(pool, tasks, gone, stays)
        waiting[0].cancel()
        await until(lambda: stays.positions == [2, 1])
        await holders[0].release()
        await (await waiting[1]).release()
    assert waiting[0].cancelled()
    assert not gone.notices


async def test_a_request_cancelled_just_as_its_slot_is_given_gives_it_back(
    pool: Pool, holders: list[WorkerHandle]
) -> None:
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(Viewer("gone").hold(pool))
        await until(lambda: pool.status["stub"].waiting == 1)
        releasing = tasks.create_task(holders[0].release())
        while pool.status["stub"].waiting:
            await asyncio.sleep(0)
        waiting.cancel()
        await releasing
    async with Viewer("next").watching(pool):
        assert pool.status["stub"].busy == 2


async def test_slots_come_back_however_sessions_end(pool: Pool) -> None:
    """C12: five times as many sessions as slots, each ended in another way."""

    async def released_twice(viewer: Viewer) -> None:
        async with viewer.watching(pool) as lease:
            await viewer.hears(FramesOut)
            await lease.release()

    async def cancelled_while_opening(viewer: Viewer) -> None:
        task = asyncio.ensure_future(viewer.open(pool))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait((task,))

    async def dropped_before_the_first_chunk(viewer: Viewer) -> None:
        lease = await viewer.open(pool, step_ms=20)
        await lease.release()

    async def cancelled_while_releasing(viewer: Viewer) -> None:
        lease = await viewer.open(pool, step_ms=20)
        await viewer.hears(FramesOut)
        task = asyncio.ensure_future(lease.release())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait((task,))

    async def ended_by_its_own_failure(viewer: Viewer) -> None:
        async with viewer.watching(pool, fault=1, fault_always=1):
            await viewer.until(
                lambda notices: next((n for n in notices if getattr(n, "fatal", False)), None)
            )

    ways = (
        released_twice,
        cancelled_while_opening,
        dropped_before_the_first_chunk,
        cancelled_while_releasing,
        ended_by_its_own_failure,
    )
    for index in range(2 * len(ways)):
        await ways[index % len(ways)](Viewer(f"s{index}"))
    await until(lambda: pool.status["stub"].busy == 0)
    one, other = Viewer("one"), Viewer("other")
    async with one.watching(pool), other.watching(pool):
        await one.hears(FramesOut, 2)
        await other.hears(FramesOut, 2)
