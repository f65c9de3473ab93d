"""Every policy in the loops of two families, against the formula on direct calls of the network."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pytest
import torch
from tiny_pocket import tiny_weights
from torch import Tensor, nn

from reverie.models.contract.controls import Controls, KeyInput
from reverie.models.contract.errors import OptionError
from reverie.models.contract.instance import LoadOptions, ModelInstance
from reverie.models.contract.loop import LoopKernel, LoopRequest, StepBatch, StepUnit, WorkPlan
from reverie.models.pocket.checkpoint import load_pocket
from reverie.models.pocket.network.vocabulary import TokenizedPrompt
from reverie.models.pocket.network.world_model import WorldModel
from reverie.models.pocket.simulator.biomes import Action
from reverie.models.pocket.simulator.walker import Facing, stance_of
from reverie.models.pocket.spec import WORLD_MODEL, instance_of
from reverie.models.pocket.world.kernel import PocketKernel
from reverie.models.services.guidance.policies import (
    EMPTY,
    WHOLE,
    AdaptiveGuidance,
    Branch,
    CFGPolicy,
    CombineSpace,
    Condition,
    EmbeddedGuidance,
    GuidanceDelta,
    GuidedCall,
    GuidedResult,
    NoGuidance,
    OneBatchGuidance,
    Passes,
    PerModalityGuidance,
    TwoPassGuidance,
)
from reverie.models.services.guidance.select import guidance_of
from reverie.models.wan.checkpoint.loading import TINY, random_components
from reverie.models.wan.description import wan_spec
from reverie.models.wan.kernel import WanKernel
from reverie.models.wan.network.transformer import WanTransformer
from reverie.models.wan.spec import assemble

SCALE = 3.0
HELD = {"move": KeyInput((), ("left",))}


@dataclass
class Watched:
    """A policy that acts from one of a loop's calls on, and what it made of that call."""

    policy: CFGPolicy
    first: int = 0
    made: list[GuidedResult] = field(default_factory=list)

    @property
    def acting(self) -> CFGPolicy:
        return self.policy if len(self.made) >= self.first else NoGuidance(self.policy.space)

    @property
    def space(self) -> CombineSpace:
        return self.policy.space

    @property
    def done(self) -> bool:
        return len(self.made) > self.first

    def passes(self, call: GuidedCall, kept: GuidanceDelta | None) -> Passes:
        return self.acting.passes(call, kept)

    def combine(
        self, made: Mapping[Branch, Tensor], call: GuidedCall, kept: GuidanceDelta | None
    ) -> GuidedResult:
        guided = self.acting.combine(made, call, kept)
        self.made.append(guided)
        return guided


class Guidable(Protocol):
    """A family, and one denoise call of its loop that has everything to see.

    Attributes:
        space: what the network predicts, and what is combined.
        chain: conditions that it can do without.
        rows: how many rows each pass of the newest run had.
    """

    space: CombineSpace
    chain: tuple[Condition, ...]
    rows: list[int]

    def run(self, policy: CFGPolicy) -> Tensor:
        """Return the guided prediction of the call, made by the loop."""

    def direct(self, branch: Branch) -> Tensor:
        """Call the network by hand, with the inputs of that call."""


def run_by_hand(
    kernel: LoopKernel[Any], instance: ModelInstance, request: LoopRequest, watched: Watched
) -> None:
    """Run one session up to the watched call, keys held down."""
    pool, state = instance.blocks, kernel.init_state(request, instance)
    assert pool is not None
    while not watched.done:
        controls = Controls(keys=HELD)
        plan = kernel.plan_step(state, controls)
        assert isinstance(plan, WorkPlan)
        blocks = pool.reserve(plan.writes)
        acting = controls if plan.takes_controls else Controls()
        [result] = kernel.run_step(StepBatch(instance, (StepUnit(plan, state, acting, blocks),)))
        state = result.state
    pool.release(state.blocks)


class Recorder:
    """Notes the arguments of a network's calls."""

    def __init__(self, network: nn.Module, patch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._forward: Callable[..., Any] = network.forward
        patch.setattr(network, "forward", self._noted)

    def _noted(self, *given: Any) -> Any:
        self.calls.append(given)
        return self._forward(*given)


class GuidedPocket:
    """Predicts clean latents; can do without its action and without its prompt."""

    space = CombineSpace.CLEAN
    chain: tuple[Condition, ...] = (Condition.ACTION, Condition.PROMPT)
    rows: list[int]

    def __init__(self, patch: pytest.MonkeyPatch, *, takes_guidance: bool) -> None:
        nets = load_pocket(tiny_weights(), dtype=torch.float32)
        if takes_guidance:
            world = WorldModel(replace(nets.config.world, takes_guidance=True)).eval()
            world.load_state_dict(nets.world.state_dict(), strict=False)
            nets = replace(nets, world=world.requires_grad_(False))
        self.nets = nets
        self.instance = instance_of(nets, sessions=1, history_chunks=0)
        self._recorder = Recorder(nets.world, patch)
        self.run(NoGuidance(self.space))
        self._inputs = self._recorder.calls[-1]

    def run(self, policy: CFGPolicy) -> Tensor:
        watched = Watched(policy)
        kernel = PocketKernel(WORLD_MODEL, self.nets, self.instance, lambda _: watched)
        request = LoopRequest("s1", 7, "a frozen lake by day", {"steps": 2, "guidance": SCALE})
        before = len(self._recorder.calls)
        run_by_hand(kernel, self.instance, request, watched)
        self.rows = [len(call[0]) for call in self._recorder.calls[before + 1 :]]
        return watched.made[-1].prediction

    @torch.inference_mode()
    def direct(self, branch: Branch) -> Tensor:
        point, level, previous, stance, text, past, told = self._inputs
        if Condition.PROMPT in branch.without:
            text = self.nets.embed([TokenizedPrompt((), (), None)])[:, None]
        if Condition.ACTION in branch.without:
            assert stance.item() == Action.LEFT
            stance = torch.full_like(stance, stance_of(Action.WAIT, Facing.LEFT))
        if branch.told is not None:
            told = torch.full_like(told, branch.told)
        output = self.nets.world(point, level, previous, stance, text, past, told)
        prediction: Tensor = output.clean_BFZhw[0, 0]
        return prediction


class GuidedWan:
    """Predicts velocities; can do without its past and without its prompt."""

    space = CombineSpace.VELOCITY
    chain: tuple[Condition, ...] = (Condition.PAST, Condition.PROMPT)
    rows: list[int]

    def __init__(self, patch: pytest.MonkeyPatch, *, takes_guidance: bool) -> None:
        components = random_components().components
        if takes_guidance:
            network = WanTransformer(replace(TINY, takes_guidance=True)).eval()
            network.load_state_dict(components.transformer.state_dict(), strict=False)
            components = replace(components, transformer=network.requires_grad_(False))
        self.components = components
        self.instance = assemble(components, "guided", LoadOptions(device="cpu", sessions=2))
        self._recorder = Recorder(components.transformer, patch)
        self.run(NoGuidance(self.space))
        self._inputs = self._recorder.calls[-1]

    def run(self, policy: CFGPolicy) -> Tensor:
        steps = len(self.components.causal.levels)
        watched = Watched(policy, first=steps)  # the first call of the second block
        loop = self.instance.spec.loops[0]
        kernel = WanKernel(loop, self.components, self.instance, lambda _: watched)
        request = LoopRequest("s1", 7, "a lake", {"guidance": SCALE})
        before = len(self._recorder.calls)
        run_by_hand(kernel, self.instance, request, watched)
        self.rows = [len(call[0]) for call in self._recorder.calls[before + steps + 1 :]]
        return watched.made[-1].prediction

    @torch.no_grad()
    def direct(self, branch: Branch) -> Tensor:
        x, timestep, prompt, past, first_frames, mute = self._inputs[:6]
        if Condition.PROMPT in branch.without:
            prompt = self.components.transformer.read_prompt(self.components.text.encode("")[None])
        told = None if branch.told is None else torch.tensor([branch.told])
        seen = None if Condition.PAST in branch.without else past
        output = self.components.transformer(x, timestep, prompt, seen, first_frames, mute, told)
        prediction: Tensor = output.flow_BFZhw[0]
        return prediction


FAMILIES: dict[str, Callable[..., Guidable]] = {"pocket": GuidedPocket, "wan": GuidedWan}


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Guidable:
    torch.manual_seed(0)
    return FAMILIES[request.param](monkeypatch, takes_guidance=False)


@pytest.fixture(params=FAMILIES)
def told(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Guidable:
    """A family whose weights take the scale as an input."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(3)
        return FAMILIES[request.param](monkeypatch, takes_guidance=True)


def assert_near(made: Tensor, wanted: Tensor) -> None:
    torch.testing.assert_close(made, wanted, atol=1e-5, rtol=0)


def test_unguided_is_the_networks_own_prediction(family: Guidable) -> None:
    assert_near(family.run(NoGuidance(family.space)), family.direct(WHOLE))
    assert family.rows == [1]


def test_guidance_by_the_prompt_is_the_formula_in_two_passes_and_in_one(family: Guidable) -> None:
    whole, empty = family.direct(WHOLE), family.direct(EMPTY)
    expected = empty + SCALE * (whole - empty)
    assert (expected - whole).abs().max() > 1e-3
    two = family.run(TwoPassGuidance(SCALE, family.space))
    assert family.rows == [1, 1]
    one = family.run(OneBatchGuidance(SCALE, family.space))
    assert family.rows == [2]
    assert_near(two, one)
    assert_near(two, expected)
    assert_near(family.run(AdaptiveGuidance(SCALE, space=family.space)), expected)


def test_guidance_by_several_conditions_is_the_formula_of_their_chain(family: Guidable) -> None:
    first, second = family.chain
    neither, without = Branch(frozenset(family.chain)), Branch(frozenset({second}))
    expected = (
        family.direct(neither)
        + 1.5 * (family.direct(without) - family.direct(neither))
        + SCALE * (family.direct(WHOLE) - family.direct(without))
    )
    made = family.run(PerModalityGuidance(((first, 1.5), (second, SCALE)), family.space))
    assert_near(made, expected)
    assert sum(family.rows) == 3


def test_an_embedded_scale_is_told_to_the_network(told: Guidable) -> None:
    made = told.run(EmbeddedGuidance(SCALE, told.space))
    assert told.rows == [1]
    assert_near(made, told.direct(Branch(told=SCALE)))
    assert (made - told.direct(WHOLE)).abs().max() > 1e-3
    assert_near(told.run(NoGuidance(told.space)), told.direct(Branch(told=1.0)))


class TestChoice:
    """The operator says how, the session how much."""

    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            ("auto", OneBatchGuidance),
            ("one_batch", OneBatchGuidance),
            ("two_pass", TwoPassGuidance),
            ("adaptive", AdaptiveGuidance),
        ],
    )
    def test_a_name_is_a_policy(self, name: str, kind: type) -> None:
        options, space = LoadOptions(guidance=name), CombineSpace.VELOCITY
        policy_for = guidance_of(options, space, takes_scale=False, model="wan")
        assert isinstance(policy_for(2.0), kind)
        assert policy_for(2.0).space is space
        assert policy_for(1.0) == NoGuidance(space)

    def test_weights_that_are_told_the_scale_are_guided_by_it_alone(self) -> None:
        space = CombineSpace.VELOCITY
        policy_for = guidance_of(LoadOptions(), space, takes_scale=True, model="wan")
        assert policy_for(1.0) == EmbeddedGuidance(1.0, space)
        with pytest.raises(
            OptionError, match="guidance: these weights of wan support auto, embedded"
        ):
            guidance_of(LoadOptions(guidance="two_pass"), space, takes_scale=True, model="wan")

    @pytest.mark.parametrize("name", ["embedded", "strong"])
    def test_what_a_model_does_not_have_is_refused_by_its_field(self, name: str) -> None:
        options, space = LoadOptions(guidance=name), CombineSpace.VELOCITY
        with pytest.raises(OptionError, match="guidance: wan supports auto, one_batch, two_pass"):
            guidance_of(options, space, takes_scale=False, model="wan")

    def test_wan_offers_weights_of_prompt_and_past_which_are_one_at_first(self) -> None:
        loops = assemble(random_components().components, "a", LoadOptions(device="cpu")).spec.loops
        for loop in loops:
            found = {spec.name: spec.default for spec in loop.parameters}
            assert (found["guidance"], found["past_guidance"]) == (1.0, 1.0)

    def test_weights_that_are_told_the_scale_have_no_weight_of_the_past(self) -> None:
        components = random_components().components
        spec = wan_spec(replace(TINY, takes_guidance=True), components.causal, components.grid)
        names = [parameter.name for parameter in spec.loops[0].parameters]
        assert "guidance" in names
        assert "past_guidance" not in names
