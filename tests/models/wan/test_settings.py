"""Every setting of the public loops, through the driver, against the loops as they are written."""

from dataclasses import replace

import pytest
import torch
from bare_wan import BareWan
from loop_rig import Rig
from torch import Tensor
from wan_rig import SetFamily, frames_out, opened, pictures, shown

from reverie.engine.inputs import ControlId, PromptInput
from reverie.models.contract.instance import LoadOptions
from reverie.models.contract.loop import LoopRequest
from reverie.models.wan.config import CausalConfig
from reverie.models.wan.durable import durable_latents
from reverie.models.wan.network.block import KeysAndValues
from reverie.models.wan.network.features import FeatureCache
from reverie.models.wan.state import OnPrompt, WanPhase

BLOCKS = 6
SHORT = CausalConfig(local=6, levels=(1000, 500))

SETTINGS = {
    "no_sink": SHORT,
    "sink_of_a_block": replace(SHORT, local=9, sink=3),
    "small_sink": replace(SHORT, local=6, sink=1),
    "window_of_a_block": replace(SHORT, local=3),
    "all_in_sight": replace(SHORT, local=21),
    "four_steps": replace(SHORT, levels=(1000, 750, 500, 250)),
    "one_step": replace(SHORT, levels=(1000,)),
    "another_shift": replace(SHORT, shift=8.0),
    "labelled_context": replace(SHORT, context_level=100.0),
    "first_alone": replace(SHORT, local=9, sink=3, first_alone=True),
    "block_of_one": replace(SHORT, block=1, local=4, sink=1),
    "recache": replace(SHORT, local=9, sink=3, recache=True),
    "recache_of_the_sink_too": replace(SHORT, local=9, sink=3, recache=True, global_sink=False),
    "recache_first_alone": replace(SHORT, local=9, sink=3, recache=True, first_alone=True),
}


class GreyPictures:
    """Latents are what is compared here."""

    def decode(
        self, latents_BZhw: Tensor, cache: FeatureCache | None
    ) -> tuple[Tensor, FeatureCache]:
        B, _, height, width = latents_BZhw.shape
        return torch.zeros(B, 1 if cache is None else 4, height * 8, width * 8, 3), ("Rep",)


def driven(causal: CausalConfig, switch_at: int | None, given: Tensor | None = None) -> Tensor:
    """Return the latents of some blocks, made through a driver."""
    family = SetFamily(causal, GreyPictures())
    rig = Rig(family, LoadOptions(device="cpu", sessions=1, history_chunks=3))
    history = None if given is None else durable_latents(given, "day", causal, "set")
    request = LoopRequest("s1", 7, "day", {"on_prompt": OnPrompt.WAIT})
    driver = rig.open(request, durable=history)
    made: list[Tensor] = []
    for block in range(BLOCKS):
        if block == switch_at:
            driver.push([PromptInput(ControlId("switch"), "night")])
        rig.run_chunks("s1", 1)
        made += [frame.clean_Zhw for frame in driver.state.fresh]
    return torch.stack(made)


def bare(causal: CausalConfig, switch_at: int | None, given: Tensor | None = None) -> Tensor:
    """Return the same latents, made by the loop as it is written."""
    loop = BareWan(SetFamily(causal, GreyPictures()).components, 7, "day")
    with torch.no_grad():
        if given is not None:
            loop.give(given)
        made = []
        for block in range(BLOCKS):
            if block == switch_at:
                loop.switch("night")
            made.append(loop.block())
    return torch.cat(made)


def assert_same(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, atol=2e-5, rtol=0)


@pytest.mark.parametrize("switch_at", [None, 1, 2, 5])
@pytest.mark.parametrize("name", SETTINGS)
def test_the_driver_makes_what_the_bare_loop_makes(name: str, switch_at: int | None) -> None:
    causal = SETTINGS[name]
    assert_same(driven(causal, switch_at), bare(causal, switch_at))


@pytest.mark.parametrize(("name", "count"), [("recache", 6), ("recache", 1), ("first_alone", 7)])
def test_given_latents_are_extended_as_the_bare_loop_extends_them(name: str, count: int) -> None:
    causal = SETTINGS[name]
    shape = (count, 16, 6, 6)
    given = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    assert_same(driven(causal, 2, given), bare(causal, 2, given))


def test_c21_a_switch_of_prompts_leaves_nothing_of_the_old_one_in_the_window() -> None:
    causal = SETTINGS["recache"]
    family = SetFamily(causal, GreyPictures())
    rig = Rig(family, LoadOptions(device="cpu", sessions=1, history_chunks=3))
    driver = rig.open(LoopRequest("s1", 7, "day", {"on_prompt": OnPrompt.WAIT}))
    rig.run_chunks("s1", 5)
    driver.push([PromptInput(ControlId("switch"), "night")])
    rig.run(lambda: driver.state.phase is WanPhase.RECACHE)
    rig.step()
    state, pool = driver.state, rig.instance.blocks
    assert pool is not None
    sink, window = state.blocks[:3], torch.stack([frame.clean_Zhw for frame in state.window])
    oracle = BareWan(family.components, 7, "night")
    seen = [torch.cat([kv[:, layer] for kv in pool.gather(sink)], dim=1) for layer in range(2)]
    past = tuple(KeysAndValues(*kv.transpose(1, 2)[:, None]) for kv in seen)
    levels = torch.zeros(1, 9)
    with torch.no_grad():
        call = family.components.transformer(window[None], levels, oracle.text, past, (6,), 3)
    assert_same(pool.gather(state.blocks[3:]), call.kv_BFLNAd[0, 3:])
    assert not any((pool.view(block) == 0).all() for block in state.blocks)
    switched, undisturbed = driven(causal, 3), driven(causal, None)
    assert torch.equal(switched[:9], undisturbed[:9])
    assert not torch.equal(switched[9:], undisturbed[9:])


@pytest.mark.parametrize("name", ["block_of_one", "first_alone", "one_step"])
@pytest.mark.parametrize("loop", ["video_continuation", "restyle"])
def test_what_is_pushed_comes_out_whatever_the_settings(name: str, loop: str) -> None:
    causal = SETTINGS[name]
    rig = Rig(SetFamily(causal), LoadOptions(device="cpu", sessions=1, history_chunks=3), loop=loop)
    driver = opened(rig)
    rig.run_chunks("s1", 1)
    driver.push(shown(rig.kernel.spec.inputs[0].name, pictures(6)))
    rig.run_chunks("s1", 2) if loop == "video_continuation" else rig.run_idle()
    first = 1 if causal.first_alone or causal.block == 1 else 9
    made = 6 + 4 * causal.block if loop == "video_continuation" else first
    assert len(frames_out(rig, since=1)) == made
