"""Pushed pictures, in the groups that latent frames encode.

The first latent frame of a video is one picture, each later one is four. The last group of a clip
may be short: its last picture is repeated for the encoder, and shown once.

Shapes: F pictures of H x W pixels.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from reverie.models.contract.controls import MediaInput
from reverie.models.wan.network.features import FIRST_GROUP, GROUP

CLIP_PICTURES = 12
"""The most pictures of a clip that are taken together; more wait."""
CAMERA_PICTURES = 24
"""The most pictures of a camera that a block is made from, the newest ones."""


def next_group(pictures: Sequence[MediaInput], begins: bool) -> int:
    """Return how many pictures make the next latent frame; 0 while too few have come.

    Args:
        pictures: those that wait, oldest first.
        begins: whether the first of them begins a video.
    """
    due = FIRST_GROUP if begins else GROUP
    for count, picture in enumerate(pictures[:due], start=1):
        if picture.last or count == due:
            return count
    return 0


def is_last_group(pictures: Sequence[MediaInput], begins: bool) -> bool:
    """Tell whether the pictures after the next group make no other group."""
    count = next_group(pictures, begins)
    return not next_group(pictures[count:], pictures[count - 1].last)


def pixels_of(group: Sequence[MediaInput], begins: bool) -> Tensor:
    """Return the pixels of a whole group, [F, H, W, 3], uint8."""
    due = FIRST_GROUP if begins else GROUP
    missing = due - len(group)
    return torch.from_numpy(np.stack([each.data for each in group] + [group[-1].data] * missing))


def resample(pictures: Sequence[MediaInput], count: int) -> tuple[MediaInput, ...]:
    """Return `count` of the pictures, evenly spaced: some are dropped or repeated."""
    chosen = np.linspace(0, len(pictures) - 1, count).round().astype(int)
    return tuple(pictures[index] for index in chosen)


def pictures_of(latent_frames: int, begins: bool) -> int:
    """Return how many pictures a number of latent frames encodes."""
    return latent_frames * GROUP - (GROUP - FIRST_GROUP) * begins
