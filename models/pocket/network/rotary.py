"""Rotary positions: the place on the frame's grid, and the slot in the window of frames.

A head of size d rotates d/2 pairs: the first half of them by the frame's slot, a quarter by the
row, a quarter by the column. Rotations by place and by slot commute, so a cache keeps keys rotated
by place only and rotates them by slot when it is read. Slots are counted inside the window, so the
length of a session has no limit.
"""

import torch
from torch import Tensor


def _frequencies(count: int, longest: float) -> Tensor:
    return longest ** -(torch.arange(count, dtype=torch.float32) / count)


def place_angles(side: int, head_size: int) -> Tensor:
    """Return angles [side * side, head_size / 2] of the places of a frame, row by row."""
    quarter = head_size // 8
    turns = torch.arange(side, dtype=torch.float32)[:, None] * _frequencies(quarter, 10.0)
    rows = turns[:, None].expand(side, side, quarter)
    columns = turns[None, :].expand(side, side, quarter)
    still = torch.zeros(side, side, 2 * quarter)
    return torch.cat([still, rows, columns], dim=-1).view(side * side, -1)


def slot_angles(slots: int, head_size: int) -> Tensor:
    """Return angles [slots, head_size / 2] of the slots of a window."""
    half = head_size // 4
    turns = torch.arange(slots, dtype=torch.float32)[:, None] * _frequencies(half, 10.0)
    return torch.cat([turns, torch.zeros(slots, half)], dim=-1)


def text_angles(side: int, slots: int, head_size: int) -> Tensor:
    """Return angles [slots, head_size / 2] of text: each slot, at the middle of the grid."""
    middle = (side - 1) / 2 * _frequencies(head_size // 8, 10.0)
    place = torch.cat([torch.zeros(head_size // 4), middle, middle])
    return slot_angles(slots, head_size) + place


def turn(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotate the pairs (i, i + d/2) of the last dimension; the angles broadcast over [..., d/2]."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cosine - second * sine, first * sine + second * cosine], dim=-1)
