import asyncio
import time

import odd_models
import pytest
import stub_model
from pool_rig import Viewer, is_alive, options, running, worker_pid
from waiting import until

from reverie.engine.emissions import FaultCode, FramesOut, StepFailed
from reverie.gpu_pool import (
    ModelUnavailableError,
    Notification,
    Pool,
    PoolClosedError,
    PoolOptions,
    SessionLost,
    StartRequest,
)
from reverie.gpu_pool.wire.session_messages import Pause

pytestmark = pytest.mark.timeout(150)  # processes start slowly on a busy machine


@pytest.mark.parametrize(
    ("family", "reason"),
    [
        ("no-such-model", "unknown model"),
        ("no_such_module:Family", "cannot load model"),
        (odd_models.place("WithoutWeights"), "there are no weights"),
        (odd_models.place("FailsInWarmUp"), "the stub was told to fail"),
        (odd_models.place("TooSmall"), "has 3 blocks, a session of program world needs"),
    ],
)
async def test_a_model_that_cannot_be_loaded_ends_the_start(family: str, reason: str) -> None:
    pool = Pool(options("inline", family=family))
    with pytest.raises(ModelUnavailableError, match=reason):
        await pool.start()
    assert not pool.ready
    with pytest.raises(PoolClosedError):
        await Viewer("a").open(pool)


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ({"adapters": [{"name": "ink", "path": "ink"}]}, "adapters: stub does not support LoRAs"),
        ({"decoder": "fast"}, "decoder: stub supports only its own, not 'fast'"),
    ],
)
async def test_options_that_a_model_would_ignore_are_refused(
    option: dict[str, object], reason: str
) -> None:
    stub = {"name": "stub", "family": stub_model.LOCATION, **option}
    pool = Pool(PoolOptions.model_validate({"mode": "inline", "models": [stub]}))
    with pytest.raises(ModelUnavailableError, match=reason):
        await pool.start()


@pytest.mark.parametrize(
    ("family", "reason"),
    [
        (odd_models.place("WithoutWeights"), "there are no weights"),
        (odd_models.place("DiesLoading"), "exit code 7"),
    ],
)
async def test_a_worker_that_fails_to_load_ends_the_start(family: str, reason: str) -> None:
    pool = Pool(options("process", family=family))
    with pytest.raises(ModelUnavailableError, match=reason):
        await pool.start()


async def test_a_worker_that_loads_for_too_long_is_ended() -> None:
    pool = Pool(options("process", family=odd_models.place("SlowToLoad"), load_limit_s=1))
    with pytest.raises(ModelUnavailableError, match="not loaded within 1 s"):
        await pool.start()


async def test_while_a_model_loads_the_pool_is_not_ready_and_the_loop_is_prompt() -> None:
    """C27, the load part; and a start that is cancelled leaves no worker."""
    pool = Pool(options("process", family=odd_models.place("SlowToLoad")))
    starting = asyncio.ensure_future(pool.start())
    delays = []
    started = time.monotonic()
    while time.monotonic() < started + 3:
        before = time.monotonic()
        await asyncio.sleep(0.01)
        delays.append(time.monotonic() - before - 0.01)
        assert not pool.ready
    pid = worker_pid(pool)
    assert is_alive(pid)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not is_alive(pid)
    assert sorted(delays)[int(len(delays) * 0.99) - 1] < 0.2


async def test_the_pool_says_what_it_serves_and_how_it_does() -> None:
    assert Pool(options("inline")).specs == {}
    async with running("inline", sessions=3) as pool:
        assert pool.specs["stub"].loops[0].name == "world_model"
        async with Viewer("a").watching(pool):
            status = pool.status["stub"]
            assert (status.ready, status.slots, status.busy) == (True, 3, 1)
            assert status.weights_version == "stub-1"
    assert not pool.ready
    assert pool.status["stub"].busy == 0


async def test_a_model_whose_device_has_less_room_has_fewer_slots() -> None:
    async with running("inline", sessions=5, family=odd_models.place("TwoSessions")) as pool:
        assert pool.status["stub"].slots == 2


async def test_closing_the_pool_ends_the_sessions_and_those_that_wait() -> None:
    viewer, waiting = Viewer("a"), Viewer("b")
    async with running("inline", sessions=1) as pool:
        lease = await viewer.open(pool)
        await viewer.hears(FramesOut)
        queued = asyncio.ensure_future(waiting.open(pool))
        await until(lambda: waiting.positions == [1])
    assert isinstance(viewer.notices[-1], SessionLost)
    assert viewer.notices[-1].code == "pool_closed"
    with pytest.raises(PoolClosedError):
        await queued
    with pytest.raises(PoolClosedError):
        await pool.lease(StartRequest("c", "stub", "world", 1), viewer)
    await lease.release()
    await pool.close()


async def test_a_pool_closes_although_a_thread_hangs() -> None:
    async with running("inline", stop_limit_s=0.1) as pool:
        viewer = Viewer("a")
        await viewer.open(pool, step_ms=2000)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_request_that_is_not_answered_in_time_costs_the_worker() -> None:
    async with running("inline", ask_limit_s=0.2) as pool:
        viewer = Viewer("a")
        async with viewer.watching(pool, step_ms=700) as lease:
            with pytest.raises(Exception, match="not answered within"):
                await lease.ask(Pause(0, "a"))
            assert not pool.ready
            assert pool.status["stub"].busy == 1
        assert pool.status["stub"].busy == 0


async def test_no_task_is_left_when_the_pool_is_closed() -> None:
    async with running("inline") as pool, Viewer("a").watching(pool):
        pass
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize(
    ("family", "code"),
    [
        ("HoardingFamily", FaultCode.TOO_MANY_BLOCKS),
        ("FramelessFamily", FaultCode.BAD_SHAPE),
        ("MisplanningFamily", FaultCode.BAD_PLAN),
    ],
)
async def test_a_kernel_that_treats_one_session_badly_costs_that_session_alone(
    family: str, code: FaultCode
) -> None:
    offender, neighbour = Viewer(odd_models.BAD), Viewer("good")

    def ended(notices: list[Notification]) -> StepFailed | None:
        faults = [notice for notice in notices if isinstance(notice, StepFailed)]
        return next((fault for fault in faults if fault.fatal), None)

    async with running("inline", sessions=2, family=odd_models.place(family)) as pool:
        async with neighbour.watching(pool), offender.watching(pool):
            assert (await offender.until(ended)).code is code
            seen = len(neighbour.frames)
            await neighbour.hears(FramesOut, seen + 10)
        assert not [told for told in neighbour.notices if isinstance(told, StepFailed)]
        assert pool.status["stub"].losses == 0
