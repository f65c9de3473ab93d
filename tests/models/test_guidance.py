"""Guidance policies, against the formula and against each other."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from reverie.models.guidance import (
    Adaptive,
    Branch,
    CFGPolicy,
    CombineSpace,
    Delta,
    GuidedCall,
    OneBatch,
    TwoPass,
    Unguided,
    guide,
    one_batch,
)

PROMPT = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
EMPTY = torch.tensor([[0.5, 0.0], [0.0, 0.5]])
CALL = GuidedCall(level=0.8, weights_version="v1", prompt="rain", chunk=3)


class Model:
    """A prediction that counts its passes and depends on each row alone."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def __call__(self, conditioning_BD: Tensor) -> Tensor:
        self.batches.append(len(conditioning_BD))
        return conditioning_BD.square() + 1.0


def guided(
    policy: CFGPolicy, call: GuidedCall = CALL, kept: Delta | None = None
) -> tuple[Tensor, Delta | None, list[int]]:
    model = Model()
    result = guide(policy, model, {Branch.PROMPT: PROMPT, Branch.EMPTY: EMPTY}, call, kept)
    return result.prediction, result.delta, model.batches


def with_scale(scale: float) -> Tensor:
    with_prompt, without = PROMPT.square() + 1.0, EMPTY.square() + 1.0
    return without + scale * (with_prompt - without)


def measured(policy: CFGPolicy) -> Delta:
    delta = guided(policy)[1]
    assert delta is not None
    return delta


def test_without_guidance_there_is_one_pass_with_the_prompt() -> None:
    prediction, delta, batches = guided(Unguided())
    assert torch.equal(prediction, PROMPT.square() + 1.0)
    assert (delta, batches) == (None, [2])


def test_one_batch_and_two_passes_agree_with_the_formula() -> None:
    two, _, passes = guided(TwoPass(3.0))
    one, _, batch = guided(OneBatch(3.0))
    torch.testing.assert_close(two, with_scale(3.0))
    torch.testing.assert_close(one, with_scale(3.0))
    assert (passes, batch) == ([2, 2], [4])


@pytest.mark.parametrize("policy", [TwoPass(1.0), OneBatch(1.0), Adaptive(1.0)])
def test_at_scale_one_guidance_changes_nothing(policy: CFGPolicy) -> None:
    torch.testing.assert_close(guided(policy)[0], guided(Unguided())[0])


@pytest.mark.parametrize("policy", [TwoPass(0.0), OneBatch(0.0), Adaptive(0.0)])
def test_at_scale_zero_the_prompt_is_ignored(policy: CFGPolicy) -> None:
    torch.testing.assert_close(guided(policy)[0], EMPTY.square() + 1.0)


def test_a_policy_names_the_space_that_it_combines_in() -> None:
    assert TwoPass(2.0).space is CombineSpace.CLEAN
    assert OneBatch(2.0, CombineSpace.VELOCITY).space is CombineSpace.VELOCITY
    assert Adaptive(2.0, space=CombineSpace.NOISE).space is CombineSpace.NOISE


def test_the_adaptive_policy_measures_once_and_then_asks_for_the_prompt_alone() -> None:
    policy = Adaptive(3.0, reuses=2)
    prediction, delta, batches = guided(policy)
    torch.testing.assert_close(prediction, with_scale(3.0))
    assert batches == [4]
    for level in (0.6, 0.4):
        prediction, delta, batches = guided(policy, replace(CALL, level=level), delta)
        torch.testing.assert_close(prediction, with_scale(3.0))
        assert batches == [2]
    assert guided(policy, replace(CALL, level=0.2), delta)[2] == [4]


def test_a_delta_stands_for_a_measurement_even_where_that_would_differ() -> None:
    policy = Adaptive(2.0)
    delta = Delta(torch.full((2, 2), 0.25), CALL)
    prediction = guided(policy, CALL, delta)[0]
    torch.testing.assert_close(prediction, PROMPT.square() + 1.25)


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
    policy = Adaptive(3.0)
    _, delta, batches = guided(policy, call, measured(policy))
    assert batches == [4]
    assert delta is not None
    assert (delta.measured, delta.reused) == (call, 0)


@pytest.mark.parametrize(("level", "passes"), [(0.95, 4), (0.9, 2), (0.5, 2), (0.45, 4)])
def test_a_delta_stands_within_its_range_of_levels_only(level: float, passes: int) -> None:
    policy = Adaptive(3.0, low=0.5, high=0.9)
    assert guided(policy, replace(CALL, level=level), measured(policy))[2] == [passes]


def test_what_is_kept_is_never_edited() -> None:
    policy = Adaptive(3.0)
    delta = measured(policy)
    before = delta.value.clone()
    guided(policy, CALL, delta)
    assert torch.equal(delta.value, before)
    assert delta.reused == 0


def test_the_usual_policy_spends_nothing_at_scale_one() -> None:
    assert one_batch(1.0) == Unguided()
    assert one_batch(2.0) == OneBatch(2.0)
