"""Rotary positions on three axes: latent frame, row and column.

Adjacent channels form a pair. Of a head's d channels the rows and the columns have 2 * (d // 6)
each, the frames the rest; every axis has base 10000 and its own number of channels as divisor.
"""

import torch
from torch import Tensor

BASE = 10000.0


def axis_sizes(head_size: int) -> tuple[int, int, int]:
    """Return the channels that turn with the frame, the row and the column."""
    spatial = 2 * (head_size // 6)
    return head_size - 2 * spatial, spatial, spatial


def turns(frames_BF: Tensor, rows: int, columns: int, head_size: int) -> tuple[Tensor, Tensor]:
    """Return cosines and sines [B, F * rows * columns, d / 2] for `turn`.

    Args:
        frames_BF: the absolute number of each latent frame, on the device to compute on.
    """
    B, frames = frames_BF.shape
    device = frames_BF.device
    places = (
        frames_BF.double()[:, :, None, None],
        torch.arange(rows, dtype=torch.float64, device=device)[:, None],
        torch.arange(columns, dtype=torch.float64, device=device),
    )
    angles = torch.cat(
        [
            place.expand(B, frames, rows, columns).reshape(B, -1, 1)
            * BASE ** (-torch.arange(0, size, 2, dtype=torch.float64, device=device) / size)
            for place, size in zip(places, axis_sizes(head_size), strict=True)
        ],
        dim=2,
    )
    return angles.cos().float(), angles.sin().float()


def turn(x_BTAd: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Turn queries or keys by the angles of their tokens; computes in float32."""
    pairs = x_BTAd.float().reshape(*x_BTAd.shape[:-1], -1, 2)
    cosine, sine = cosine[:, :, None], sine[:, :, None]  # one angle for all heads
    real = pairs[..., 0] * cosine - pairs[..., 1] * sine
    imaginary = pairs[..., 0] * sine + pairs[..., 1] * cosine
    return torch.stack((real, imaginary), dim=-1).flatten(-2).to(x_BTAd.dtype)
