"""What is left of a lost worker, and what is made of it."""

import numpy as np
import pytest
import torch
from loop_rig import Rig
from wan_rig import Again, cache_of, components_of, kinds, opened, pictures, shown, wan_rig

from reverie.engine.driver import LoopDriver
from reverie.engine.inputs import ControlId, PromptInput
from reverie.engine.options import DriverOptions
from reverie.models.contract.loop import Durable, LoopRequest
from reverie.models.wan.state import WanPhase, WanState


@pytest.fixture(scope="module")
def loaded() -> Rig:
    return wan_rig()


def at_rest(rig: Rig, driver: LoopDriver[WanState]) -> WanState:
    rig.run(lambda: driver.state.phase is WanPhase.BLOCK)
    return driver.state


def kept(rig: Rig, driver: LoopDriver[WanState]) -> Durable:
    durable = rig.kernel.durable(driver.state)
    assert durable is not None
    return durable


def revived(again: Again, durable: Durable, chunks: int, prompt: str = "a lake") -> Rig:
    rig = again()
    request = LoopRequest("s1", 7, prompt, {"on_prompt": 1})
    options = DriverOptions(history_chunks=3)
    rig.open(request, options, durable=durable, chunks=chunks)
    return rig


@pytest.mark.parametrize("chunks", [1, 3])
def test_a_video_that_fits_the_window_goes_on_exactly(again: Again, chunks: int) -> None:
    rig = again()
    driver = opened(rig)
    rig.run_chunks("s1", chunks)
    durable = kept(rig, driver)
    other = revived(again, durable, chunks)
    wanted, made = rig.run_chunks("s1", 1)[0], other.run_chunks("s1", 1)[0]
    assert np.array_equal(made.frames, wanted.frames)
    assert "recache" not in kinds(other, chunks), "it was told its own prompt again"


def test_of_a_video_that_left_the_window_sink_and_numbers_stay(again: Again) -> None:
    rig = again()
    driver = opened(rig)
    rig.run_chunks("s1", 5)
    state = at_rest(rig, driver)
    assert state.frame == 15
    other = revived(again, kept(rig, driver), 5)
    rebuilt = at_rest(other, other.drivers["s1"])
    assert (rebuilt.frame, len(rebuilt.blocks)) == (15, 9)
    numbers = [frame.number for frame in rebuilt.window]
    assert numbers == [frame.number for frame in state.window] == list(range(6, 15))
    assert [frame.number for frame in rebuilt.sink] == [0, 1, 2]
    sinks = [each[:3] for each in (cache_of(rig, state), cache_of(other, rebuilt))]
    assert torch.equal(*sinks), "it was made with nothing in sight"


def test_a_prompt_that_is_newer_than_the_state_acts_on_it(again: Again) -> None:
    rig = again()
    driver = opened(rig)
    rig.run_chunks("s1", 1)
    other = revived(again, kept(rig, driver), 1, prompt="night")
    other.run_chunks("s1", 1)
    driver.push([PromptInput(ControlId("p"), "night")])
    [wanted] = rig.run_chunks("s1", 1)
    assert np.array_equal(other.frames("s1")[-1].frames, wanted.frames)


def test_a_clip_that_was_under_way_is_history_as_far_as_it_came(again: Again) -> None:
    rig = again()
    driver = opened(rig)
    rig.run_chunks("s1", 1)
    driver.push(shown("clip", pictures(6), ends=False))
    rig.run_chunks("s1", 1)
    durable = kept(rig, driver)
    other = revived(again, durable, 2)
    state = at_rest(other, other.drivers["s1"])
    assert (state.frame, len(state.blocks)) == (2, 2)
    other.run_chunks("s1", 1)


def test_nothing_is_kept_before_the_first_frame(again: Again) -> None:
    rig = again()
    assert rig.kernel.durable(opened(rig).state) is None


def test_it_is_latents_and_words(again: Again) -> None:
    rig = again()
    driver = opened(rig)
    rig.run_chunks("s1", 4)
    durable = kept(rig, driver)
    config = components_of(rig).transformer.config
    assert durable.data["clean"].shape == (12, config.in_dim, 6, 6)
    assert (
        sum(tensor.nbytes for tensor in durable.data.values()) < 12 * config.in_dim * 36 * 4 + 256
    )
