"""A video without end: frames are counted from 0 again before their numbers run out."""

from dataclasses import dataclass, replace

import pytest
import torch
from bare_wan import BareWan
from loop_rig import Rig
from torch import Tensor
from wan_rig import SetFamily, cache_of, opened

from reverie.engine.driver import LoopDriver
from reverie.engine.inputs import ControlId, PromptInput
from reverie.models.contract.instance import LoadOptions
from reverie.models.contract.loop import LoopRequest
from reverie.models.wan.config import CausalConfig
from reverie.models.wan.noise import SeededNoise
from reverie.models.wan.state import LatentFrame, WanPhase, WanState
from reverie.models.wan.window import renumbered

POSITIONS = 32
SETTINGS = CausalConfig(local=9, sink=3, levels=(1000, 500), recache=True, positions=POSITIONS)


@dataclass(frozen=True)
class LaterNoise(SeededNoise):
    """What the same session draws so many frames later."""

    offset: int

    def first(self, seed: int, frame: int, shape: tuple[int, ...]) -> Tensor:
        return super().first(seed, frame + self.offset, shape)

    def again(self, seed: int, frame: int, step: int, shape: tuple[int, ...]) -> Tensor:
        return super().again(seed, frame + self.offset, step, shape)


def rig_of(causal: CausalConfig) -> Rig:
    return Rig(SetFamily(causal), LoadOptions(device="cpu", sessions=1, history_chunks=3))


def until_anew(rig: Rig, driver: LoopDriver[WanState]) -> WanState:
    """Run until the frames have been renumbered once; return the state with its cache."""
    rig.run(lambda: driver.state.offset > 0 and driver.state.phase is WanPhase.BLOCK)
    return driver.state


def test_c29_numbers_stay_within_the_positions_however_long_it_runs() -> None:
    rig = rig_of(SETTINGS)
    driver = opened(rig)
    pool = rig.instance.blocks
    assert pool is not None
    for chunk in range(60):
        if chunk % 7 == 3:
            driver.push([PromptInput(ControlId(f"p{chunk}"), f"prompt {chunk}")])
        rig.run_chunks("s1", 1)
        state = driver.state
        assert max(frame.number for frame in (*state.window, *state.fresh)) < POSITIONS
        assert len(state.window) <= SETTINGS.local
    assert all(out.frames.std() > 0 for out in rig.frames("s1"))
    assert driver.state.offset + driver.state.frame >= 60 * 3 - 3
    driver.close()
    assert pool.free == pool.count


def test_what_was_in_sight_is_the_beginning_of_the_video_then() -> None:
    rig = rig_of(SETTINGS)
    driver = opened(rig, prompt="day")
    state = until_anew(rig, driver)
    assert state.frame == 12, "the sink, and a window of nine"
    family = rig.family
    assert isinstance(family, SetFamily)
    parts = replace(family.components, noise=LaterNoise(state.offset))
    bare = BareWan(parts, 7, "day")
    latents = [frame.clean_Zhw for frame in (*state.sink, *state.window)]
    with torch.no_grad():
        bare.give(torch.stack(latents))
        wanted = bare.block()
    rig.run_chunks("s1", 1)
    made = torch.stack([frame.clean_Zhw for frame in driver.state.fresh])
    torch.testing.assert_close(made, wanted, atol=2e-5, rtol=0)


def test_a_session_that_was_counted_anew_goes_on_elsewhere() -> None:
    rig = rig_of(SETTINGS)
    driver = opened(rig)
    state = until_anew(rig, driver)
    durable = rig.kernel.durable(state)
    assert durable is not None
    other = rig_of(SETTINGS)
    again = other.open(LoopRequest("s1", 7, "a lake", {"on_prompt": 1}), durable=durable)
    other.run(lambda: again.state.phase is WanPhase.BLOCK)
    revived = again.state
    assert (revived.offset, revived.frame) == (state.offset, state.frame)
    assert torch.equal(cache_of(other, revived), cache_of(rig, state))


@pytest.mark.parametrize(("count", "blocks"), [(6, [0, 0, 0, 3, 3, 3]), (5, [0, 0, 2, 2, 2])])
def test_only_the_first_block_may_be_short(count: int, blocks: list[int]) -> None:
    frames = tuple(LatentFrame(40 + index, 40, torch.zeros(1)) for index in range(count))
    counted = renumbered(frames, SETTINGS)
    assert [frame.number for frame in counted] == list(range(count))
    assert [frame.block for frame in counted] == blocks


def test_too_few_positions_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"positions must be at least sink .* local .* block, not 14"
    ):
        replace(SETTINGS, positions=14)
