"""The map of a model's own walk: legal tiles that agree with what the model has drawn so far.

`noise_pairing.py` says what should come into view. What the model draws there is the map from then
on, and stays until the picture clearly shows another kind. Targets rendered from such a map pull a
walk back to the textures and keep its geometry.

Shapes: B worlds, T tiles in view along one axis.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reverie.models.pocket.simulator.simulator import WorldState, tiles_in_view
from reverie.models.pocket.training.legal_tiles import CELLS, TileReading

WHOLE = CELLS * CELLS
CLEARLY = 0.5
"""A whole tile changes when another kind has less than this share of its error."""


@dataclass(frozen=True, slots=True)
class LandMap:
    """Tiles in view.

    Attributes:
        kinds: a `Tile` each: uint8 [B, T, T].
        known: whether the tile has been in view as a whole: [B, T, T].
    """

    kinds: NDArray[np.uint8]
    known: NDArray[np.bool_]


def true_map(state: WorldState) -> LandMap:
    """Return the simulator's tiles, all of them known."""
    kinds = tiles_in_view(state)
    return LandMap(kinds, np.ones(kinds.shape, bool))


def carried(land: LandMap, before: WorldState, after: WorldState) -> LandMap:
    """Return the tiles in view after a step; new tiles are the simulator's."""
    right, down = after.x // CELLS - before.x // CELLS, after.y // CELLS - before.y // CELLS
    span = np.arange(land.kinds.shape[1])
    rows, columns = span + down[:, None], span + right[:, None]
    inside = ((rows >= 0) & (rows <= span[-1]))[:, :, None]
    inside = inside & ((columns >= 0) & (columns <= span[-1]))[:, None, :]
    place = (
        np.arange(len(rows))[:, None, None],
        rows.clip(0, span[-1])[:, :, None],
        columns.clip(0, span[-1])[:, None, :],
    )
    return LandMap(
        np.where(inside, land.kinds[place], tiles_in_view(after)), inside & land.known[place]
    )


def discovered(land: LandMap, reading: TileReading) -> LandMap:
    """Read tiles that are not known yet from the picture in which they appear."""
    fresh = ~land.known & (reading.cells > 0)
    kinds = np.where(fresh, reading.kinds, land.kinds)
    return LandMap(kinds, land.known | (reading.cells == WHOLE))


def revised(land: LandMap, reading: TileReading, settled_B: NDArray[np.bool_]) -> LandMap:
    """Replace tiles whose picture clearly shows another kind, in worlds with settled colours.

    Tiles that the walker covers in part, or that are partly out of view, stay.
    """
    current = np.take_along_axis(reading.errors, land.kinds[..., None].astype(np.int64), -1)[..., 0]
    clearly = reading.errors.min(axis=-1) < CLEARLY * current
    clearly &= (reading.cells == WHOLE) & settled_B[:, None, None]
    return LandMap(np.where(clearly, reading.kinds, land.kinds), land.known)
