"""What the noise of a frame says about the land that comes into view, as features for the model.

A few denoise steps cannot choose between kinds of tile: they paint the mean of all that may come.
So training pairs noise with land (`training/noise_pairing.py`), and the model gets the number that
decides in a form that it can learn from: as cosines of its quantile, for each cell of a token.

Shapes: B sessions, F frames, N tokens of a frame, Z latent channels, C cells of a token.
"""

import math

import torch
from torch import Tensor

TELLING_CHANNELS = 2
"""Channels of noise whose sum decides."""
WAVES = 8


def noise_features(noise_BFNC: Tensor, channels: int) -> Tensor:
    """Return cosines of the quantiles of pure noise: [B, F, N, cells * WAVES], float32.

    Args:
        noise_BFNC: patches of standard normal noise, channel by channel.
        channels: Z.
    """
    noise = noise_BFNC.float().view(*noise_BFNC.shape[:-1], channels, -1)
    number = noise[..., :TELLING_CHANNELS, :].sum(dim=-2) / math.sqrt(TELLING_CHANNELS)
    waves = torch.arange(1, WAVES + 1, device=noise.device) * math.pi
    quantile: Tensor = torch.special.ndtr(number)
    return (quantile[..., None] * waves).cos().flatten(-2)
