"""Pictures that a client pushes: as latents, and what can be read from them.

Shapes: F pictures, H = W = 128 pixels; Z latent channels on a grid h x w.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reverie.models.contract.controls import MediaInput
from reverie.models.pocket.network.networks import PocketNets
from reverie.models.pocket.simulator.biomes import Action, Biome, Hour
from reverie.models.pocket.simulator.palettes import palettes

_SHIFTS = {
    Action.WAIT: (0, 0),
    Action.UP: (1, 0),
    Action.DOWN: (-1, 0),
    Action.LEFT: (0, 1),
    Action.RIGHT: (0, -1),
}
"""How many cells down and right the picture moves with each action."""

_EVERY_PX = 4
"""Distance of the pixels that are compared with palettes; a tile has a side of 16."""
_FAR = 60.0
"""A larger distance between two colours counts as this one."""


def latents_of(pictures: Sequence[MediaInput], nets: PocketNets) -> Tensor:
    """Return the latents [F, Z, h, w] of pushed pictures, in their own memory."""
    frames_FHWC = torch.from_numpy(np.stack([picture.data for picture in pictures]))
    return nets.encode(frames_FHWC).clone()


def action_between(before_Zhw: Tensor, after_Zhw: Tensor) -> Action:
    """Return the walker's action between two pictures, by how the land moved.

    A move shifts the map, and so the latents, by exactly one cell. The rim, where new land comes
    in, is left out.
    """

    def distance(action: Action) -> float:
        moved_Zhw = torch.roll(before_Zhw, _SHIFTS[action], (1, 2))
        return float((moved_Zhw - after_Zhw)[:, 1:-1, 1:-1].abs().mean())

    return min(Action, key=distance)


def likely_place(picture_HWC: NDArray[np.uint8]) -> tuple[Biome, Hour]:
    """Return the biome and hour whose palette is nearest to the colours of a picture."""
    pixels_N3 = picture_HWC[::_EVERY_PX, ::_EVERY_PX].reshape(-1, 1, 3).astype(np.float32)
    best, nearest = (Biome.MEADOW, Hour.DAY), np.inf
    for biome in Biome:
        for hour in Hour:
            colours_13 = palettes()[biome, hour][None].astype(np.float32)
            apart = np.sqrt(((pixels_N3 - colours_13) ** 2).sum(-1)).min(1)
            mean = float(np.minimum(apart, _FAR).mean())
            if mean < nearest:
                best, nearest = (biome, hour), mean
    return best
