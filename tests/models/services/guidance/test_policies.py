"""Guidance policies, against the formula and against each other."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from reverie.models.services.guidance.calls import per_clean
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
    NoGuidance,
    OneBatchGuidance,
    PerModalityGuidance,
    TwoPassGuidance,
    guide,
    one_batch,
)

PROMPT = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
NO_PROMPT = torch.tensor([[0.5, 0.0], [0.0, 0.5]])
ACTION = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
CALL = GuidedCall(level=0.8, weights_version="v1", prompt="rain", chunk=3)


class Model:
    """A prediction that counts its passes and depends on each row alone, not additively."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def __call__(self, branches: tuple[Branch, ...]) -> Tensor:
        rows = torch.cat([seen(branch) for branch in branches])
        self.batches.append(len(rows))
        return rows


def seen(branch: Branch) -> Tensor:
    """Predict what a branch leads to."""
    prompt = NO_PROMPT if Condition.PROMPT in branch.without else PROMPT
    action = torch.zeros(2, 2) if Condition.ACTION in branch.without else ACTION
    return (prompt + action).square() + 1.0 + (branch.told or 0.0)


def guided(
    policy: CFGPolicy, call: GuidedCall = CALL, kept: GuidanceDelta | None = None
) -> tuple[Tensor, GuidanceDelta | None, list[int]]:
    model = Model()
    result = guide(policy, model, call, kept)
    return result.prediction, result.delta, model.batches


def with_scale(scale: float) -> Tensor:
    return seen(EMPTY) + scale * (seen(WHOLE) - seen(EMPTY))


def measured(policy: CFGPolicy) -> GuidanceDelta:
    delta = guided(policy)[1]
    assert delta is not None
    return delta


def test_without_guidance_there_is_one_pass_with_the_prompt() -> None:
    prediction, delta, batches = guided(NoGuidance())
    assert torch.equal(prediction, seen(WHOLE))
    assert (delta, batches) == (None, [2])


def test_one_batch_and_two_passes_agree_with_the_formula() -> None:
    two, _, passes = guided(TwoPassGuidance(3.0))
    one, _, batch = guided(OneBatchGuidance(3.0))
    torch.testing.assert_close(two, with_scale(3.0))
    torch.testing.assert_close(one, with_scale(3.0))
    assert (passes, batch) == ([2, 2], [4])


@pytest.mark.parametrize(
    "policy", [TwoPassGuidance(1.0), OneBatchGuidance(1.0), AdaptiveGuidance(1.0)]
)
def test_at_scale_one_guidance_changes_nothing(policy: CFGPolicy) -> None:
    torch.testing.assert_close(guided(policy)[0], guided(NoGuidance())[0])


@pytest.mark.parametrize(
    "policy", [TwoPassGuidance(0.0), OneBatchGuidance(0.0), AdaptiveGuidance(0.0)]
)
def test_at_scale_zero_the_prompt_is_ignored(policy: CFGPolicy) -> None:
    torch.testing.assert_close(guided(policy)[0], seen(EMPTY))


def test_a_policy_names_the_space_that_it_combines_in() -> None:
    assert TwoPassGuidance(2.0).space is CombineSpace.CLEAN
    assert OneBatchGuidance(2.0, CombineSpace.VELOCITY).space is CombineSpace.VELOCITY
    assert AdaptiveGuidance(2.0, space=CombineSpace.NOISE).space is CombineSpace.NOISE


def test_the_adaptive_policy_measures_once_and_then_asks_for_the_prompt_alone() -> None:
    policy = AdaptiveGuidance(3.0, reuses=2)
    prediction, delta, batches = guided(policy)
    torch.testing.assert_close(prediction, with_scale(3.0))
    assert batches == [4]
    for level in (0.6, 0.4):
        prediction, delta, batches = guided(policy, replace(CALL, level=level), delta)
        torch.testing.assert_close(prediction, with_scale(3.0))
        assert batches == [2]
    assert guided(policy, replace(CALL, level=0.2), delta)[2] == [4]


def test_a_delta_stands_for_a_measurement_even_where_that_would_differ() -> None:
    policy = AdaptiveGuidance(2.0)
    delta = GuidanceDelta(torch.full((2, 2), 0.25), CALL)
    prediction = guided(policy, CALL, delta)[0]
    torch.testing.assert_close(prediction, seen(WHOLE) + 0.25)


@pytest.mark.parametrize(
    "call",
    [
        replace(CALL, weights_version="v2"),
        replace(CALL, prompt="snow"),
        replace(CALL, chunk=4),
    ],
    ids=["weights", "prompt", "chunk"],
)
def test_a_delta_is_dropped_when_what_it_was_measured_under_changes(call: GuidedCall) -> None:
    policy = AdaptiveGuidance(3.0)
    _, delta, batches = guided(policy, call, measured(policy))
    assert batches == [4]
    assert delta is not None
    assert (delta.measured, delta.reused) == (call, 0)


@pytest.mark.parametrize(("level", "passes"), [(0.95, 4), (0.9, 2), (0.5, 2), (0.45, 4)])
def test_a_delta_stands_within_its_range_of_levels_only(level: float, passes: int) -> None:
    policy = AdaptiveGuidance(3.0, low=0.5, high=0.9)
    assert guided(policy, replace(CALL, level=level), measured(policy))[2] == [passes]


def test_what_is_kept_is_never_edited() -> None:
    policy = AdaptiveGuidance(3.0)
    delta = measured(policy)
    before = delta.value.clone()
    guided(policy, CALL, delta)
    assert torch.equal(delta.value, before)
    assert delta.reused == 0


def test_the_usual_policy_spends_nothing_at_scale_one() -> None:
    assert one_batch(1.0) == NoGuidance()
    assert one_batch(2.0) == OneBatchGuidance(2.0)


CHAIN = ((Condition.ACTION, 1.5), (Condition.PROMPT, 3.0))
NEITHER = Branch(frozenset({Condition.ACTION, Condition.PROMPT}))


class TestPerModality:
    """A scale for each condition, each added to those before it."""

    def test_it_is_the_formula_of_the_chain(self) -> None:
        prediction, delta, batches = guided(PerModalityGuidance(CHAIN))
        expected = (
            seen(NEITHER)
            + 1.5 * (seen(EMPTY) - seen(NEITHER))  # the action, without the prompt
            + 3.0 * (seen(WHOLE) - seen(EMPTY))  # the prompt, with the action
        )
        torch.testing.assert_close(prediction, expected)
        assert (delta, batches) == (None, [6])

    def test_the_order_of_the_chain_counts(self) -> None:
        back = guided(PerModalityGuidance(CHAIN[::-1]))[0]
        without_action = Branch(frozenset({Condition.ACTION}))
        expected = (
            seen(NEITHER)
            + 3.0 * (seen(without_action) - seen(NEITHER))
            + 1.5 * (seen(WHOLE) - seen(without_action))
        )
        torch.testing.assert_close(back, expected)
        assert not torch.allclose(back, guided(PerModalityGuidance(CHAIN))[0])

    def test_a_condition_of_weight_one_is_simply_there(self) -> None:
        policy = PerModalityGuidance(((Condition.ACTION, 1.0), (Condition.PROMPT, 3.0)))
        prediction, _, batches = guided(policy)
        torch.testing.assert_close(prediction, with_scale(3.0))
        assert batches == [4]

    def test_with_weights_of_one_nothing_but_the_whole_is_computed(self) -> None:
        policy = PerModalityGuidance(((Condition.ACTION, 1.0), (Condition.PROMPT, 1.0)))
        prediction, _, batches = guided(policy)
        assert torch.equal(prediction, seen(WHOLE))
        assert batches == [2]

    def test_its_weights_add_up_to_one(self) -> None:
        assert sum(PerModalityGuidance(CHAIN).weights().values()) == pytest.approx(1.0)


def test_an_embedded_scale_reaches_the_model_in_one_pass() -> None:
    prediction, delta, batches = guided(EmbeddedGuidance(2.5))
    assert torch.equal(prediction, seen(Branch(told=2.5)))
    assert (delta, batches) == (None, [2])


class TestSpaces:
    """Clean, velocity and noise are affine maps of each other at one point of the path."""

    POINT = torch.tensor([[0.3, -1.0], [2.0, 0.7]])
    LEVEL = 0.6

    def clean_from(self, prediction: Tensor, space: CombineSpace, level: float) -> Tensor:
        match space:
            case CombineSpace.CLEAN:
                return prediction
            case CombineSpace.VELOCITY:
                return self.POINT - level * prediction
            case CombineSpace.NOISE:
                return (self.POINT - level * prediction) / (1 - level)

    def from_clean(self, clean: Tensor, space: CombineSpace, level: float) -> Tensor:
        noise = (self.POINT - (1 - level) * clean) / level
        by_space = {
            CombineSpace.CLEAN: clean,
            CombineSpace.VELOCITY: noise - clean,
            CombineSpace.NOISE: noise,
        }
        return by_space[space]

    @pytest.mark.parametrize("space", list(CombineSpace))
    @pytest.mark.parametrize(
        "make",
        [
            lambda space: TwoPassGuidance(3.0, space),
            lambda space: OneBatchGuidance(3.0, space),
            lambda space: PerModalityGuidance(CHAIN, space),
            lambda space: AdaptiveGuidance(3.0, space=space),
        ],
        ids=["two_pass", "one_batch", "per_modality", "adaptive"],
    )
    def test_a_measured_prediction_is_the_same_in_every_space(
        self, space: CombineSpace, make: Callable[[CombineSpace], CFGPolicy]
    ) -> None:
        policy = make(space)
        branches = [branch for each in policy.passes(CALL, None) for branch in each]
        clean = {branch: seen(branch) for branch in branches}
        call = replace(CALL, level=self.LEVEL)
        there = {b: self.from_clean(value, space, self.LEVEL) for b, value in clean.items()}
        combined = policy.combine(there, replace(call, native=space), None).prediction
        torch.testing.assert_close(
            self.clean_from(combined, space, self.LEVEL),
            policy.combine(clean, call, None).prediction,
        )

    @pytest.mark.parametrize("native", list(CombineSpace))
    @pytest.mark.parametrize("space", list(CombineSpace))
    def test_a_kept_delta_stays_as_it_was_in_the_policys_own_space(
        self, space: CombineSpace, native: CombineSpace
    ) -> None:
        policy, after = AdaptiveGuidance(3.0, space=space), 0.3
        first = replace(CALL, level=self.LEVEL, native=native)
        there = {b: self.from_clean(seen(b), native, self.LEVEL) for b in (WHOLE, EMPTY)}
        delta = policy.combine(there, first, None).delta
        assert delta is not None
        kept_there = self.from_clean(seen(WHOLE), space, self.LEVEL) - self.from_clean(
            seen(EMPTY), space, self.LEVEL
        )
        torch.testing.assert_close(delta.value, kept_there)
        prompt = {WHOLE: self.from_clean(seen(WHOLE), native, after)}
        second = replace(first, level=after)
        assert policy.passes(second, delta) == ((WHOLE,),)
        made = policy.combine(prompt, second, delta).prediction
        expected = self.from_clean(seen(WHOLE), space, after) + 2.0 * kept_there
        torch.testing.assert_close(
            self.clean_from(made, native, after), self.clean_from(expected, space, after)
        )

    def test_pure_noise_tells_nothing_of_the_noise_so_that_nothing_is_kept(self) -> None:
        policy = AdaptiveGuidance(3.0, space=CombineSpace.NOISE)
        first = replace(CALL, level=1.0, native=CombineSpace.VELOCITY)
        delta = policy.combine({WHOLE: PROMPT, EMPTY: NO_PROMPT}, first, None).delta
        assert policy.passes(replace(first, level=0.5), delta) == ((WHOLE, EMPTY),)
        assert per_clean(CombineSpace.NOISE, 1.0) == 0.0
