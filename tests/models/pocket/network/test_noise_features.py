import math

import torch
from tiny_pocket import tiny_weights
from torch import Tensor

from reverie.models.pocket.checkpoint import load_pocket
from reverie.models.pocket.network.noise_features import TELLING_CHANNELS, WAVES, noise_features
from reverie.models.pocket.network.world_model import WorldModel


def predicted(world: WorldModel, level: float) -> Tensor:
    config, generator = world.config, torch.Generator().manual_seed(3)
    shape = (1, config.latent_channels, config.grid, config.grid)
    noisy, previous = (torch.randn(shape, generator=generator) for _ in range(2))
    text = torch.zeros(1, config.text_width)
    with torch.inference_mode():
        output = world.forward_frame(
            noisy, torch.tensor([level]), previous, torch.tensor([1]), text, None
        )
    return output.clean_BFZhw


def test_the_features_are_those_of_the_deciding_quantile() -> None:
    noise = torch.zeros(1, 1, 1, 8 * 4)
    assert torch.allclose(
        noise_features(noise, 8).view(4, WAVES)[0],
        torch.tensor([math.cos(math.pi * wave / 2) for wave in range(1, WAVES + 1)]),
        atol=1e-6,
    )
    noise.view(8, 4)[:TELLING_CHANNELS, 2] = 9.0
    told = noise_features(noise, 8).view(4, WAVES)
    assert torch.allclose(told[2], torch.tensor([-1.0, 1.0] * (WAVES // 2)), atol=1e-5)
    noise.view(8, 4)[TELLING_CHANNELS:] = 5.0
    assert torch.equal(noise_features(noise, 8).view(4, WAVES), told)


def test_the_model_uses_noise_features_only_for_pure_noise() -> None:
    world = load_pocket(tiny_weights(), torch.device("cpu"), torch.float32).world
    lucky = {level: predicted(world, level) for level in (1.0, 0.9)}
    world.luck.weight.zero_()
    assert torch.equal(predicted(world, 0.9), lucky[0.9])
    assert not torch.allclose(predicted(world, 1.0), lucky[1.0])
