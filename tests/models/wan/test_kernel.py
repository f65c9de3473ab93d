"""What a prompt does to a block in progress, and the sources of history."""

from dataclasses import replace

import pytest
import torch
from loop_rig import Rig
from tiny_wan import TinyWan, tiny_options

from reverie.engine.emissions import ControlApplied
from reverie.engine.inputs import ControlId, PromptInput
from reverie.engine.options import DriverOptions
from reverie.models.contract.controls import NO_CONTROLS, Controls
from reverie.models.contract.loop import LoopRequest, StepBatch, StepUnit, WorkPlan
from reverie.models.wan.checkpoint.loading import TINY_CAUSAL
from reverie.models.wan.config import CausalConfig
from reverie.models.wan.durable import durable_latents
from reverie.models.wan.kernel import WanKernel
from reverie.models.wan.state import OnPrompt, WanPhase, WanState


@pytest.fixture(scope="module")
def loaded() -> Rig:
    return Rig(TinyWan(), tiny_options())


def opened(loaded: Rig, on_prompt: OnPrompt) -> Rig:
    rig = loaded.again()
    request = LoopRequest("s1", 7, "a lake", {"on_prompt": on_prompt})
    rig.open(request, DriverOptions(history_chunks=3))
    return rig


def kinds(rig: Rig, chunk: int) -> list[str]:
    """Return the units up to the decoding of a chunk, in order."""
    units = [unit for unit in rig.units("s1") if unit.chunk == chunk]
    return [unit.kind for unit in units if unit.kind != "decode"]


def say(rig: Rig, prompt: str) -> None:
    rig.drivers["s1"].push([PromptInput(ControlId(prompt), prompt)])


class TestPromptWithinABlock:
    """The second chunk is in progress, with one of its two denoise calls done."""

    def begin_second(self, loaded: Rig, on_prompt: OnPrompt) -> Rig:
        rig = opened(loaded, on_prompt)
        rig.run_chunks("s1", 1)
        rig.run(lambda: kinds(rig, 1)[-1:] == ["denoise"])
        return rig

    def test_it_waits_for_the_next_block(self, loaded: Rig) -> None:
        rig = self.begin_second(loaded, OnPrompt.WAIT)
        say(rig, "night")
        rig.run_chunks("s1", 2)
        assert kinds(rig, 1) == ["context", "denoise", "denoise"]
        assert kinds(rig, 2)[1:] == ["encode_text", "recache", "denoise", "denoise"]

    def test_it_is_heard_by_the_calls_that_remain(self, loaded: Rig) -> None:
        rig = self.begin_second(loaded, OnPrompt.FINISH)
        say(rig, "night")
        rig.run_chunks("s1", 1)
        assert kinds(rig, 1) == ["context", "denoise", "encode_text", "recache", "denoise"]
        applied = [said for said in rig.heard["s1"] if isinstance(said, ControlApplied)]
        assert [(said.control, said.chunk) for said in applied] == [("night", 1)]

    def test_it_begins_the_block_again(self, loaded: Rig) -> None:
        rig = self.begin_second(loaded, OnPrompt.RESTART)
        say(rig, "night")
        rig.run_chunks("s1", 1)
        again = ["encode_text", "recache", "denoise", "denoise"]
        assert kinds(rig, 1) == ["context", "denoise", *again]

    def test_a_restarted_block_is_the_block_of_the_new_prompt(self, loaded: Rig) -> None:
        late = self.begin_second(loaded, OnPrompt.RESTART)
        say(late, "night")
        early = opened(loaded, OnPrompt.RESTART)
        early.run_chunks("s1", 1)
        say(early, "night")
        [one], [other] = late.run_chunks("s1", 1), early.run_chunks("s1", 1)
        assert (one.frames == other.frames).all()

    @pytest.mark.parametrize("on_prompt", [OnPrompt.FINISH, OnPrompt.RESTART])
    def test_a_flood_of_prompts_does_not_hold_the_block_up(
        self, loaded: Rig, on_prompt: OnPrompt
    ) -> None:
        rig = self.begin_second(loaded, on_prompt)
        for number in range(12):
            say(rig, f"prompt {number}")
            rig.step()
        assert "decode" in {unit.kind for unit in rig.units("s1")}
        assert len(rig.frames("s1")) >= 2


def run_alone(kernel: WanKernel, rig: Rig, state: WanState, until: WanPhase) -> WanState:
    """Run units without a driver up to a phase; blocks are never given back."""
    assert rig.instance.blocks is not None
    while state.phase is not until:
        plan = kernel.plan_step(state, NO_CONTROLS)
        assert isinstance(plan, WorkPlan)
        blocks = rig.instance.blocks.reserve(plan.writes)
        unit = StepUnit(plan, state, Controls(), blocks)
        [result] = kernel.run_step(StepBatch(rig.instance, (unit,)))
        state = result.state
    return state


class TestGivenLatents:
    """A video that is to be continued."""

    def test_given_frames_become_the_history_that_made_frames_would_be(self) -> None:
        rig = Rig(TinyWan(), tiny_options(sessions=8))
        kernel = rig.kernel
        assert isinstance(kernel, WanKernel)
        request = LoopRequest("s1", 7, "a lake", {"on_prompt": 0})
        begun = kernel.init_state(request, rig.instance)
        made = run_alone(kernel, rig, begun, WanPhase.DECODE)
        made = run_alone(kernel, rig, made, WanPhase.BLOCK)
        latents = torch.stack([frame.clean_Zhw for frame in made.window])
        given = durable_latents(latents, "a lake", TINY_CAUSAL, rig.instance.weights_version)
        told = run_alone(kernel, rig, kernel.revive(given, request, rig.instance), WanPhase.BLOCK)
        assert (told.frame, len(told.blocks)) == (made.frame, len(made.blocks)) == (3, 3)
        assert rig.instance.blocks is not None
        assert rig.instance.blocks.gather(told.blocks).equal(
            rig.instance.blocks.gather(made.blocks)
        )

    def test_the_first_block_may_be_a_single_frame(self) -> None:
        family = TinyWan()
        rig = Rig(family, tiny_options())
        parts = family._components[rig.instance.name]
        alone = replace(parts, causal=replace(parts.causal, first_alone=True))
        kernel = WanKernel(rig.kernel.spec, alone, rig.instance)
        state = kernel.init_state(LoopRequest("s1", 7, "a lake"), rig.instance)
        state = run_alone(kernel, rig, state, WanPhase.CONTEXT)
        assert len(state.fresh) == 1
        state = run_alone(
            kernel, rig, run_alone(kernel, rig, state, WanPhase.BLOCK), WanPhase.CONTEXT
        )
        assert (state.frame, len(state.fresh)) == (1, 3)


class TestConfig:
    """Windows that cannot be."""

    def test_a_window_that_cannot_hold_sink_and_block_is_refused(self) -> None:
        with pytest.raises(ValueError, match="5 frames cannot hold a sink of 3"):
            CausalConfig(local=5, sink=3, block=3)
