"""Memory that runs out anywhere is said to have run out: what was asked for, and what there is."""

import pytest
from failing_device import HUGE, HUGE_SEED, place
from pool_rig import Viewer, options, prompt, running
from stub_model import Fault

from reverie.engine.emissions import ControlFailed, FaultCode, FramesOut, StepFailed
from reverie.gpu_pool import ModelUnavailableError, Pool, RequestRefusedError, StartRequest
from reverie.gpu_pool.wire.session_messages import Reset

pytestmark = pytest.mark.timeout(150)

WORDS = r"out of memory on cpu: \d+\.\d PiB were requested, .* are free"


@pytest.mark.parametrize("family", ["TooLarge", "TooLargeToDecode"])
async def test_a_model_that_does_not_fit_says_so_where_it_is_loaded(family: str) -> None:
    pool = Pool(options("process", place(family)))
    with pytest.raises(ModelUnavailableError, match=f"cannot be loaded: .*{WORDS}") as raised:
        await pool.start()
    assert raised.value.code == "out_of_memory"
    assert pool.status["stub"].losses == 1, "another process would not fit either"


async def test_what_does_not_fit_fails_alone_by_its_name_and_the_worker_stays() -> None:
    async with running("inline", family=place("Cramped"), sessions=3) as pool:
        neighbour, asks, opens = Viewer("neighbour"), Viewer("asks"), Viewer("opens")
        async with neighbour.watching(pool), asks.watching(pool) as lease:
            with pytest.raises(RequestRefusedError, match=WORDS) as refused:
                await pool.lease(StartRequest("opens", "stub", "world", HUGE_SEED), opens)
            assert refused.value.code == "out_of_memory"
            lease.send(prompt("asks", "c1", HUGE))
            failed = await asks.hears(ControlFailed)
            assert (failed.control, failed.code) == ("c1", FaultCode.OUT_OF_MEMORY)
            with pytest.raises(RequestRefusedError, match=WORDS) as refused:
                await lease.ask(Reset(0, "asks", seed=HUGE_SEED))
            assert refused.value.code == "out_of_memory"
            await asks.hears(FramesOut, len(asks.frames) + 2)
            await neighbour.hears(FramesOut, len(neighbour.frames) + 2)
        assert pool.status["stub"].losses == 0


async def test_a_step_that_does_not_fit_alone_ends_its_session_by_that_name() -> None:
    async with running("inline", family=place("Cramped")) as pool:
        viewer = Viewer("a")
        async with viewer.watching(pool, fault=Fault.RAISE, fault_chunk=1, fault_always=1):
            failed = await viewer.hears(StepFailed, 2)
    assert (failed.code, failed.fatal) == (FaultCode.OUT_OF_MEMORY, True)
