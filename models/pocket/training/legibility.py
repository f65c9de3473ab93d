"""What can still be read in a generated frame: its tiles, its colours, its walker.

Every measure compares pixels with the simulator's drawings, whatever map the model has made up.

Shapes: B frames, H = W = 128 pixels, T whole tiles of a frame, K kinds, P palettes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reverie.models.pocket.biomes import Biome, Hour
from reverie.models.pocket.palettes import palettes
from reverie.models.pocket.simulator import (
    CELL_PX,
    FRAME_PX,
    WALKER_LEFT_PX,
    WALKER_TOP_PX,
    WorldState,
)
from reverie.models.pocket.tiles import TILE_PX, atlas, texture_of
from reverie.models.pocket.walker import (
    TRANSPARENT,
    WALKER_HEIGHT_PX,
    WALKER_WIDTH_PX,
    Facing,
    sprites,
)

LEGIBLE_DB = 20.0
TILES = FRAME_PX // TILE_PX - 1  # along one side; the last one may be cut
LARGEST_ERROR = 255**2 * 10 ** (-LEGIBLE_DB / 10)

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Legibility:
    """What was read in B frames.

    Attributes:
        tiles: share of whole tiles at `LEGIBLE_DB` or nearer to a drawing in the colours
            that are asked for: [B].
        kinds: the nearest kind of every whole tile in those colours, 255 under the walker: [B, T].
        coloured: whether no other palette explains the frame better: [B].
        walker: whether he stands in the middle, nearest to the facing that he should have: [B].
    """

    tiles: Floats
    kinds: NDArray[np.uint8]
    coloured: NDArray[np.bool_]
    walker: NDArray[np.bool_]


def read(frames_BHWC: NDArray[np.uint8], state: WorldState) -> Legibility:
    """Read frames that should show worlds like `state`, on any map."""
    rows = [_read_land(frame, state, row) for row, frame in enumerate(frames_BHWC)]
    return Legibility(
        tiles=np.array([tiles for tiles, _, _ in rows]),
        kinds=np.stack([kinds for _, kinds, _ in rows]),
        coloured=np.array([coloured for _, _, coloured in rows]),
        walker=np.array([_walker_right(f, state, row) for row, f in enumerate(frames_BHWC)]),
    )


def _drawings(phase: int) -> Floats:
    """Return every kind in every palette: [P, K, TILE_PX, TILE_PX, 3]."""
    inks = atlas()[texture_of()][:, :, phase]
    return np.stack([palettes()[b, h][inks[b]] for b in Biome for h in Hour]).astype(float)


def _read_land(
    frame_HWC: NDArray[np.uint8], state: WorldState, row: int
) -> tuple[float, NDArray[np.uint8], bool]:
    top, left = (int(v) % 2 * CELL_PX for v in (state.y[row], state.x[row]))
    side = TILES * TILE_PX
    cut = frame_HWC[top : top + side, left : left + side].astype(float)
    tiles = cut.reshape(TILES, TILE_PX, TILES, TILE_PX, 3).swapaxes(1, 2).reshape(TILES**2, -1)
    drawings = _drawings(int(state.clock[row]) % 2)
    flat = drawings.reshape(-1, tiles.shape[1])
    distance = (tiles**2).sum(1)[:, None] - 2 * tiles @ flat.T + (flat**2).sum(1)
    errors = (distance / tiles.shape[1]).reshape(len(tiles), *drawings.shape[:2])
    open_tiles = ~_under_walker(top, left)
    asked = int(state.biome[row] * len(Hour) + state.hour[row])
    nearest = errors[:, asked].min(axis=-1)
    kinds = np.where(open_tiles, errors[:, asked].argmin(axis=-1), 255).astype(np.uint8)
    explained = errors[open_tiles].min(axis=-1).mean(axis=0)
    return float((nearest[open_tiles] <= LARGEST_ERROR).mean()), kinds, explained.argmin() == asked


def _under_walker(top: int, left: int) -> NDArray[np.bool_]:
    start = np.arange(TILES) * TILE_PX
    rows = (start + top < WALKER_TOP_PX + WALKER_HEIGHT_PX) & (
        start + top + TILE_PX > WALKER_TOP_PX
    )
    columns = (start + left < WALKER_LEFT_PX + WALKER_WIDTH_PX) & (
        start + left + TILE_PX > WALKER_LEFT_PX
    )
    return (rows[:, None] & columns[None, :]).reshape(-1)


def _walker_right(frame_HWC: NDArray[np.uint8], state: WorldState, row: int) -> bool:
    """Compare the walker's own pixels with all his drawings, and with a frame without him."""
    down, right = WALKER_TOP_PX + WALKER_HEIGHT_PX, WALKER_LEFT_PX + WALKER_WIDTH_PX
    patch = frame_HWC[WALKER_TOP_PX:down, WALKER_LEFT_PX:right].astype(float)
    colours = palettes()[state.biome[row], state.hour[row]].astype(float)
    errors = np.empty((len(Facing), 2))
    for facing in Facing:
        for stride in range(2):
            sprite = sprites()[facing, stride]
            mask = sprite != TRANSPARENT
            error = np.square(patch[mask] - colours[sprite[mask]]).mean()
            errors[facing, stride] = error
    best = errors.min(axis=1)
    return bool(best.argmin() == state.facing[row] and best.min() < 255**2 * 10**-1.5)
