"""Guidance in pocket's loop: policies agree, and what is kept is dropped when it must be."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from tiny_pocket import tiny_weights
from torch import Tensor

from reverie.engine.rollouts import Rollouts, roll_out
from reverie.models.contract.behavior import ActionRecord
from reverie.models.contract.controls import NO_CONTROLS, Controls
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import LoopRequest, StepBatch, StepUnit, WorkPlan
from reverie.models.pocket.checkpoint import SHIPPED_WEIGHTS, load_pocket
from reverie.models.pocket.network.networks import PocketNets
from reverie.models.pocket.spec import WORLD_MODEL, instance_of
from reverie.models.pocket.world.kernel import PocketKernel
from reverie.models.pocket.world.state import PocketState
from reverie.models.services.guidance.policies import (
    AdaptiveGuidance,
    CFGPolicy,
    NoGuidance,
    OneBatchGuidance,
    TwoPassGuidance,
)

SCALE = 2.0
STEPS = 3
Policy = Callable[[float], CFGPolicy]


@pytest.fixture(scope="module", params=["tiny", "shipped"])
def nets(request: pytest.FixtureRequest) -> PocketNets:
    path = tiny_weights() if request.param == "tiny" else SHIPPED_WEIGHTS
    return load_pocket(path, dtype=torch.float32)


@pytest.fixture
def tiny() -> PocketNets:
    return load_pocket(tiny_weights(), dtype=torch.float32)


def request(scale: float = SCALE) -> LoopRequest:
    return LoopRequest("s1", 7, "a frozen lake by day", {"steps": STEPS, "guidance": scale})


def latents(nets: PocketNets, policy: Policy) -> Tensor:
    """Make a frame, in all its steps, under a policy.

    One: what rounding changes in a frame, the next ones are made from.
    """
    instance = instance_of(nets, sessions=1, history_chunks=0)
    rollouts = Rollouts(PocketKernel(WORLD_MODEL, nets, instance, policy), instance)
    left = ActionRecord(held={"move": ("left",)})
    behavior = roll_out(rollouts, [request()], lambda *_: left, 2)["s1"][1].record.behavior
    assert behavior is not None
    return behavior.tensors["clean"]


def test_two_passes_and_one_batch_make_equal_latents(nets: PocketNets) -> None:
    torch.testing.assert_close(
        latents(nets, TwoPassGuidance), latents(nets, OneBatchGuidance), rtol=0, atol=1e-5
    )


def test_guidance_makes_other_latents_than_none(nets: PocketNets) -> None:
    guided, plain = latents(nets, OneBatchGuidance), latents(nets, lambda _: NoGuidance())
    assert (guided - plain).abs().max() > 1e-3


def test_an_adaptive_policy_that_always_measures_is_the_plain_one(nets: PocketNets) -> None:
    always = latents(nets, lambda scale: AdaptiveGuidance(scale, reuses=0))
    torch.testing.assert_close(always, latents(nets, OneBatchGuidance), rtol=0, atol=1e-5)


class Frame:
    """One session, stepped by hand to the beginning of a frame, under the adaptive policy."""

    def __init__(self, nets: PocketNets, policy: Policy = AdaptiveGuidance) -> None:
        self.instance: ModelInstance = instance_of(nets, sessions=1, history_chunks=0)
        self.kernel = PocketKernel(WORLD_MODEL, nets, self.instance, policy)
        self.state: PocketState = self.kernel.init_state(request(), self.instance)
        self.rows: list[int] = []
        nets.world.blocks[0].register_forward_pre_hook(
            lambda module, given: self.rows.append(len(given[0]))
        )
        for _ in range(4):  # begin, first frame, decode, context
            self.step()
        self.rows.clear()

    def step(self, controls: Controls = NO_CONTROLS) -> None:
        pool = self.instance.blocks
        assert pool is not None
        plan = self.kernel.plan_step(self.state, controls)
        assert isinstance(plan, WorkPlan)
        acting = controls if plan.takes_controls else NO_CONTROLS
        unit = StepUnit(plan, self.state, acting, pool.reserve(plan.writes))
        [result] = self.kernel.run_step(StepBatch(self.instance, (unit,)))
        self.state = result.state


def test_the_delta_lives_in_the_state_and_saves_passes_within_its_frame(tiny: PocketNets) -> None:
    frame = Frame(tiny)
    frame.step()
    assert frame.state.delta is not None
    assert frame.state.delta.reused == 0
    first = frame.state
    frame.step()
    frame.step()
    assert frame.rows == [2, 1, 1]
    assert first.delta is not None
    assert first.delta.reused == 0, "a state is never edited"
    frame.step()
    assert frame.state.delta is None, "the next frame is another picture"


def test_a_delta_of_other_weights_is_dropped(tiny: PocketNets) -> None:
    frame = Frame(tiny)
    frame.step()
    frame.instance.weights_version = "newer"
    frame.step()
    assert frame.rows == [2, 2]
    assert frame.state.delta is not None
    assert frame.state.delta.measured.weights_version == "newer"


def test_a_delta_of_another_prompt_is_dropped(tiny: PocketNets) -> None:
    frame = Frame(tiny)
    frame.step()
    frame.state = replace(frame.state, prompt="something else")
    frame.step()
    assert frame.rows == [2, 2]


def test_guidance_is_a_parameter_that_acts_from_the_next_frame_on(tiny: PocketNets) -> None:
    frame = Frame(tiny, lambda scale: NoGuidance() if scale == 1 else OneBatchGuidance(scale))
    frame.step(Controls(parameters={"guidance": 1.0}))
    assert (frame.state.guidance, frame.rows) == (1.0, [1])


def test_a_session_is_not_guided_unless_it_asks_for_it() -> None:
    [guidance] = [one for one in WORLD_MODEL.parameters if one.name == "guidance"]
    assert (guidance.low, guidance.default) == (1.0, 1.0)
