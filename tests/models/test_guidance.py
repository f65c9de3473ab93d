"""Guidance policies, against the formula and against each other."""

import pytest
import torch
from torch import Tensor

from reverie.models.guidance import CFGPolicy, CombineSpace, OneBatch, TwoPass, Unguided

PROMPT = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
EMPTY = torch.tensor([[0.5, 0.0], [0.0, 0.5]])


class Model:
    """A prediction that counts its passes and depends on each row alone."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def __call__(self, conditioning_BD: Tensor) -> Tensor:
        self.batches.append(len(conditioning_BD))
        return conditioning_BD.square() + 1.0


def guided(policy: CFGPolicy) -> tuple[Tensor, list[int]]:
    model = Model()
    return policy.guide(model, PROMPT, EMPTY), model.batches


def test_without_guidance_there_is_one_pass_with_the_prompt() -> None:
    prediction, batches = guided(Unguided())
    assert torch.equal(prediction, PROMPT.square() + 1.0)
    assert batches == [2]


def test_one_batch_and_two_passes_agree_with_the_formula() -> None:
    with_prompt, without = PROMPT.square() + 1.0, EMPTY.square() + 1.0
    expected = without + 3.0 * (with_prompt - without)
    two, passes = guided(TwoPass(3.0))
    one, batch = guided(OneBatch(3.0))
    torch.testing.assert_close(two, expected)
    torch.testing.assert_close(one, expected)
    assert (passes, batch) == ([2, 2], [4])


@pytest.mark.parametrize("policy", [TwoPass(1.0), OneBatch(1.0)])
def test_at_scale_one_guidance_changes_nothing(policy: CFGPolicy) -> None:
    torch.testing.assert_close(guided(policy)[0], guided(Unguided())[0])


@pytest.mark.parametrize("policy", [TwoPass(0.0), OneBatch(0.0)])
def test_at_scale_zero_the_prompt_is_ignored(policy: CFGPolicy) -> None:
    torch.testing.assert_close(guided(policy)[0], EMPTY.square() + 1.0)


def test_a_policy_names_the_space_that_it_combines_in() -> None:
    assert TwoPass(2.0).space is CombineSpace.CLEAN
    assert OneBatch(2.0, CombineSpace.VELOCITY).space is CombineSpace.VELOCITY
