"""Rotary positions of Oasis: places in a picture, and frames in a window.

Adjacent channels form a pair that is rotated together.
"""

import math

import torch
from torch import Tensor


def place_angles(rows: int, columns: int, channels: int, top: float) -> Tensor:
    """Return angles [rows * columns, 2 * channels] for places on a grid.

    Both sides run from -1 to 1; the first half of the result belongs to the row, the second to the
    column.

    Args:
        channels: channels of one axis.
        top: the greatest frequency, in half turns from the middle to a side.
    """
    frequencies = torch.linspace(1.0, top, channels // 2) * math.pi
    down, across = (
        torch.linspace(-1, 1, count)[:, None] * frequencies for count in (rows, columns)
    )
    down, across = (angles.repeat_interleave(2, dim=-1) for angles in (down, across))
    grid = torch.cat(
        [
            down[:, None].expand(rows, columns, -1),
            across[None].expand(rows, columns, -1),
        ],
        dim=-1,
    )
    return grid.reshape(rows * columns, -1)


def frame_angles(frames: int, channels: int) -> Tensor:
    """Return angles [frames, channels] for frames, numbered from 0 in their window."""
    frequencies = 10000.0 ** (-torch.arange(0, channels, 2).float() / channels)
    angles = torch.arange(frames).float()[:, None] * frequencies
    return angles.repeat_interleave(2, dim=-1)


def rotate(x: Tensor, angles: Tensor) -> Tensor:
    """Rotate the first channels of `x`, as many as there are angles; the rest is unchanged."""
    size = angles.shape[-1]
    turned, rest = x[..., :size], x[..., size:]
    even, odd = turned[..., 0::2], turned[..., 1::2]
    quarter = torch.stack((-odd, even), dim=-1).flatten(-2)
    angles = angles.to(x.device)
    result = turned * angles.cos().to(x.dtype) + quarter * angles.sin().to(x.dtype)
    return torch.cat([result, rest], dim=-1)
