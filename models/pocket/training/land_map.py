"""The map that a model's own walk is on: legal tiles that agree with what it has drawn so far.

What should come into view is for `chance.py` to say. What the model draws there is the map from
then on, and stays, whatever becomes of its picture, until that clearly shows another kind. Targets
rendered from such a map pull a walk back to the textures and keep its geometry.

Shapes: B worlds, T tiles in view along one axis.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reverie.models.pocket.simulator.simulator import WorldState, tiles_in_view
from reverie.models.pocket.training.legal_tiles import CELLS, TileReading

WHOLE = CELLS * CELLS
CLEARLY = 0.5
"""A tile that was seen whole changes when another kind has less than this share of its error."""


@dataclass(frozen=True, slots=True)
class Land:
    """Tiles in view.

    Attributes:
        kinds: a `Tile` each: uint8 [B, T, T].
        known: whether the tile has been in view as a whole: [B, T, T].
    """

    kinds: NDArray[np.uint8]
    known: NDArray[np.bool_]


def true_land(state: WorldState) -> Land:
    """Return the simulator's own tiles, all of them known."""
    kinds = tiles_in_view(state)
    return Land(kinds, np.ones(kinds.shape, bool))


def carried(land: Land, before: WorldState, after: WorldState) -> Land:
    """Return the tiles in view after a step; those that come into view are the simulator's."""
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
    return Land(
        np.where(inside, land.kinds[place], tiles_in_view(after)), inside & land.known[place]
    )


def discovered(land: Land, reading: TileReading) -> Land:
    """Take tiles that were not known from the picture in which they appear."""
    fresh = ~land.known & (reading.cells > 0)
    kinds = np.where(fresh, reading.kinds, land.kinds)
    return Land(kinds, land.known | (reading.cells == WHOLE))


def revised(land: Land, reading: TileReading, settled_B: NDArray[np.bool_]) -> Land:
    """Give tiles up whose picture clearly shows another kind, in worlds where colours are settled.

    Those that the walker covers in part, or that are partly out of view, stay.
    """
    current = np.take_along_axis(reading.errors, land.kinds[..., None].astype(np.int64), -1)[..., 0]
    clearly = reading.errors.min(axis=-1) < CLEARLY * current
    clearly &= (reading.cells == WHOLE) & settled_B[:, None, None]
    return Land(np.where(clearly, reading.kinds, land.kinds), land.known)
