"""A device that fails for good: its worker is replaced, and every session continues."""

from pathlib import Path

import failing_device
import pool_rig
import pytest
import stub_model
from failing_device import ILLEGAL, place
from pool_rig import Viewer, prompt, running, worker_pid
from stub_model import Fault

from reverie.engine.emissions import ControlApplied, FramesOut, StepFailed
from reverie.gpu_pool import (
    ModelUnavailableError,
    Pool,
    PoolOptions,
    SessionLost,
    SessionRecovered,
    WorkerLost,
)

pytestmark = pytest.mark.timeout(150)  # processes start slowly on a busy machine

WORDS = "the device has failed: CUDA error: an illegal memory access was encountered"


@pytest.fixture(autouse=True)
def marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers know what happened in those before them."""
    monkeypatch.setenv(stub_model.LOG_VARIABLE, str(tmp_path / "steps.jsonl"))
    monkeypatch.setenv(failing_device.MARK_VARIABLE, str(tmp_path / "mark"))


async def goes_on_after(viewer: Viewer, lost: WorkerLost) -> None:
    """Wait until it is back and three more chunks have come; no step of it has failed."""
    assert lost.reason == WORDS
    await viewer.hears(SessionRecovered)
    frames = len(viewer.frames)
    await viewer.hears(FramesOut, frames + 3)
    assert not any(isinstance(each, StepFailed | SessionLost) for each in viewer.notices)


@pytest.mark.parametrize("unit", [0, stub_model.DECODE_UNIT, stub_model.CONTEXT_UNIT])
async def test_a_step_that_loses_the_device_costs_a_worker_and_no_session(unit: int) -> None:
    async with running("process", family=place("Failing"), sessions=3) as pool:
        guilty, neighbour, newcomer = Viewer("guilty"), Viewer("neighbour"), Viewer("newcomer")
        fault = {"fault": Fault.RAISE, "fault_chunk": 2, "fault_unit": unit}
        async with neighbour.watching(pool):
            await neighbour.hears(FramesOut, 1)
            pid = worker_pid(pool)
            async with guilty.watching(pool, **fault):
                lost = await guilty.hears(WorkerLost)
                assert not pool.ready, "no session is sent here meanwhile"
                await goes_on_after(guilty, lost)
                await goes_on_after(neighbour, await neighbour.hears(WorkerLost))
                assert pool.ready
                assert worker_pid(pool) != pid
                assert pool.status["stub"].losses == 1
                async with newcomer.watching(pool):
                    await newcomer.hears(FramesOut, 2)


async def test_a_session_that_loses_the_device_twice_fails_alone() -> None:
    async with running("process", family=place("Failing"), restart_pause_s=0.01) as pool:
        good, bad = Viewer("good"), Viewer("bad")
        fault = {"fault": Fault.RAISE, "fault_always": 1, "fault_chunk": 1, "fault_unit": 2}
        async with good.watching(pool), bad.watching(pool, **fault):
            assert WORDS in (await bad.hears(SessionLost)).message
            await good.hears(SessionRecovered, 2)
            await good.hears(FramesOut, len(good.frames) + 3)
    assert not any(isinstance(notice, SessionLost) for notice in good.notices)


async def test_a_prompt_whose_reading_loses_the_device_acts_in_the_next_worker() -> None:
    async with running("process", family=place("Failing"), sessions=2) as pool:
        asks, neighbour = Viewer("asks"), Viewer("neighbour")
        async with asks.watching(pool) as lease, neighbour.watching(pool):
            await asks.hears(FramesOut, 1)
            lease.send(prompt("asks", "c1", ILLEGAL))
            await goes_on_after(asks, await asks.hears(WorkerLost))
            assert (await asks.hears(ControlApplied)).control == "c1"
            await goes_on_after(neighbour, await neighbour.hears(WorkerLost))


@pytest.mark.parametrize("family", ["FailsAtFirst", "LosesDeviceInWarmUp"])
async def test_a_load_that_loses_the_device_is_tried_in_another_process(family: str) -> None:
    async with running("process", family=place(family)) as pool:
        assert pool.ready
        assert pool.status["stub"].losses == 1


async def test_a_device_that_fails_every_load_is_said_to_have_failed() -> None:
    pool = Pool(options("AlwaysFails"))
    with pytest.raises(ModelUnavailableError, match=f"cannot be loaded: {WORDS}") as raised:
        await pool.start()
    assert raised.value.code == "device_lost"
    assert pool.status["stub"].losses == 2


def options(family: str) -> PoolOptions:
    return pool_rig.options("process", place(family), restart_pause_s=0.01)
