"""What a model measured when it was loaded: it is told, and a worker that takes over keeps it."""

import logging
import os
import signal

import pytest
import timed_model
from pool_rig import Viewer, running, worker_pid

from reverie.engine.emissions import FramesOut
from reverie.gpu_pool import SessionRecovered

pytestmark = pytest.mark.timeout(150)  # processes start slowly on a busy machine


async def test_what_was_chosen_and_why_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with running("inline", family=timed_model.LOCATION) as pool:
        assert pool.status["stub"].speed == timed_model.SPEED
    text = caplog.text
    assert "stub makes 7.9 of 24 pictures a second, with float32 on 1 thread" in text
    assert "no other setting is clearly faster" in text
    assert "bfloat16 on 1 thread: skipped, it is not supported" in text
    assert "something is slow" in text


async def test_a_worker_that_takes_over_computes_as_the_first_one_chose() -> None:
    """Without another calibration, which might choose otherwise in the middle of a session."""
    async with running("process", family=timed_model.LOCATION) as pool:
        assert pool.specs["stub"].title == "auto, 0, 2"
        viewer = Viewer("a")
        async with viewer.watching(pool, step_ms=5):
            await viewer.hears(FramesOut)
            os.kill(worker_pid(pool), signal.SIGKILL)
            await viewer.hears(SessionRecovered)
            assert pool.specs["stub"].title == "float32, 1, 0"
            assert pool.status["stub"].speed == timed_model.SPEED
