"""A worker on a thread leaves nothing of itself in the process that it ran in."""

import pytest
from odd_models import place
from pool_rig import Viewer, open_files, options, running
from waiting import until

from reverie.engine.emissions import FramesOut
from reverie.gpu_pool import ModelUnavailableError, Pool

TIMES = 10


async def test_a_pool_that_is_opened_and_closed_again_and_again_keeps_no_descriptor() -> None:
    before = open_files()
    for _ in range(TIMES):
        async with running("inline") as pool:
            viewer = Viewer("a")
            async with viewer.watching(pool):
                await viewer.hears(FramesOut)
    await until(lambda: open_files() <= before)


async def test_nor_does_one_whose_model_cannot_be_loaded() -> None:
    before = open_files()
    for _ in range(TIMES):
        with pytest.raises(ModelUnavailableError):
            await Pool(options("inline", place("WithoutWeights"))).start()
    await until(lambda: open_files() <= before)
