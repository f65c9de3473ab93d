"""Randomness from (seed, stream, index) and nothing else."""

import itertools

import torch

from reverie.models.contract.seeds import normal, seeded


def test_equal_arguments_draw_equal_noise_whatever_was_drawn_before() -> None:
    first = normal(7, "frame", 3, (4, 4))
    torch.manual_seed(1)
    torch.randn(10)
    normal(7, "frame", 4, (9,))
    assert torch.equal(normal(7, "frame", 3, (4, 4)), first)


def test_every_argument_matters() -> None:
    draws = [
        tuple(normal(seed, stream, index, (4,)).tolist())
        for seed, stream, index in itertools.product((0, 7, -7, 2**63), ("frame", "text"), (0, 1))
    ]
    assert len(set(draws)) == len(draws)


def test_arguments_cannot_be_confused_with_each_other() -> None:
    assert seeded(1, "a", 11).initial_seed() != seeded(11, "a", 1).initial_seed()


def test_the_global_generator_is_left_alone() -> None:
    before = torch.get_rng_state()
    normal(1, "frame", 0, (100,))
    assert torch.equal(torch.get_rng_state(), before)


def test_the_noise_is_standard_normal() -> None:
    noise = normal(3, "frame", 0, (100_000,))
    assert noise.dtype is torch.float32
    assert abs(noise.mean().item()) < 0.02
    assert abs(noise.std().item() - 1.0) < 0.02
