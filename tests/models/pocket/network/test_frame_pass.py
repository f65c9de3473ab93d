"""The pass that is served makes the numbers of the network as it was trained."""

from dataclasses import dataclass

import pytest
import torch
from tiny_pocket import tiny_weights
from torch import Tensor

from reverie.models.pocket.checkpoint import load_pocket
from reverie.models.pocket.network.frame_inputs import FrameCondition, Past
from reverie.models.pocket.network.frame_pass import KEPT_CONDITIONS, FramePass, freeze
from reverie.models.pocket.network.world_model import WorldModel
from reverie.models.pocket.world.past_rows import PocketPastRow, joined

CPU = torch.device("cpu")
FRAMES = 5


@dataclass(frozen=True)
class Pair:
    """The same weights as they were trained, and prepared for serving."""

    trained: WorldModel
    served: WorldModel


def pair_of(dtype: torch.dtype) -> Pair:
    trained, served = (load_pocket(tiny_weights(), CPU, dtype).world for _ in range(2))
    freeze(served)
    return Pair(trained, served)


@pytest.fixture(scope="module")
def pair() -> Pair:
    return pair_of(torch.float32)


@dataclass(frozen=True)
class Inputs:
    """Pictures, conditions and a cache for some sessions."""

    noisy: Tensor
    previous: Tensor
    conditions: list[FrameCondition]
    cached: Tensor


def inputs(world: WorldModel, levels: tuple[float, ...], frames: int = FRAMES) -> Inputs:
    config, rows = world.config, len(levels)
    generator = torch.Generator().manual_seed(7)
    picture = (rows, config.latent_channels, config.grid, config.grid)
    block = (2, config.layers, config.heads, config.tokens, config.head_size)
    texts = [torch.randn(config.text_width, generator=generator) for _ in levels]
    return Inputs(
        torch.randn(picture, generator=generator),
        torch.randn(picture, generator=generator),
        [FrameCondition(level, row, texts[row]) for row, level in enumerate(levels)],
        torch.randn((rows, frames, *block), generator=generator).to(world.enter.weight.dtype),
    )


def predicted(world: WorldModel, given: Inputs, past: Past | None) -> Tensor:
    return world.predict(given.noisy, given.previous, given.conditions, past)


def assert_near(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@torch.inference_mode()
@pytest.mark.parametrize("levels", [(1.0,), (0.4,), (1.0, 0.4, 0.0)])
@pytest.mark.parametrize("frames", [0, 1, FRAMES])
def test_predictions_and_keys_are_those_of_the_trained_network(
    pair: Pair, levels: tuple[float, ...], frames: int
) -> None:
    given = inputs(pair.trained, levels, frames)
    made = []
    for world in (pair.trained, pair.served):
        past = world.read(given.cached) if frames else None
        kept = world.remember(given.noisy, given.previous, given.conditions, past)
        made.append((predicted(world, given, past), kept))
    (clean, kept), (served_clean, served_kept) = made
    assert_near(served_clean, clean)
    assert_near(served_kept, kept)


@torch.inference_mode()
def test_half_precision_is_as_near_to_the_truth_as_before() -> None:
    exact, half = pair_of(torch.float32), pair_of(torch.bfloat16)
    given = inputs(exact.trained, (0.7,))
    truth = predicted(exact.trained, given, exact.trained.read(given.cached))
    cached = given.cached.bfloat16()
    errors = [
        (predicted(world, given, world.read(cached)) - truth).square().mean().item()
        for world in (half.trained, half.served)
    ]
    assert errors[1] < 1.5 * errors[0]


@torch.inference_mode()
def test_a_pass_leaves_the_cache_that_it_reads_as_it_was(pair: Pair) -> None:
    given = inputs(pair.served, (0.7,))
    past = pair.served.read(given.cached)
    before = [(key.clone(), value.clone()) for key, value in past.layers]
    first = predicted(pair.served, given, past)
    for (key, value), (old_key, old_value) in zip(past.layers, before, strict=True):
        assert torch.equal(key, old_key)
        assert torch.equal(value, old_value)
    assert torch.equal(predicted(pair.served, given, past), first)


@torch.inference_mode()
def test_rows_of_several_caches_are_put_together(pair: Pair) -> None:
    """Sessions whose caches were read in other batches than the one they share now."""
    given = inputs(pair.served, (0.7, 0.4, 0.1))
    whole = pair.served.read(given.cached)
    alone = [pair.served.read(cached[None]) for cached in given.cached]
    mixed = joined([PocketPastRow(whole, 0), PocketPastRow(alone[1], 0), PocketPastRow(whole, 2)])
    expected = predicted(pair.served, given, whole)
    assert_near(predicted(pair.served, given, mixed), expected)
    turned = joined([PocketPastRow(whole, row) for row in (2, 1, 0)])
    reversed_rows = Inputs(
        given.noisy.flip(0), given.previous.flip(0), given.conditions[::-1], given.cached
    )
    assert_near(predicted(pair.served, reversed_rows, turned), expected.flip(0))


@torch.inference_mode()
def test_what_a_row_is_told_is_never_that_of_another_row(pair: Pair) -> None:
    given = inputs(pair.served, (0.7,))
    (told,) = given.conditions
    frames = FramePass(pair.trained)
    made = []
    for condition in (
        told,
        FrameCondition(told.level, told.stance + 1, told.text_T),
        FrameCondition(told.level / 2, told.stance, told.text_T),
        FrameCondition(told.level, told.stance, told.text_T + 1),
        told,
    ):
        made.append(frames.predict(given.noisy, given.previous, [condition], None))
        trained = pair.trained.predict(given.noisy, given.previous, [condition], None)
        assert_near(made[-1], trained)
    assert torch.equal(made[0], made[-1])


@torch.inference_mode()
def test_many_prompts_do_not_fill_the_memory(pair: Pair) -> None:
    given = inputs(pair.served, (0.7,))
    frames = FramePass(pair.trained)
    for number in range(KEPT_CONDITIONS + 20):
        condition = FrameCondition(0.5, 0, torch.full((pair.served.config.text_width,), number / 9))
        frames.predict(given.noisy, given.previous, [condition], None)
    assert len(frames._conditions) == KEPT_CONDITIONS
