"""What a picture shows: its tiles, its colours, its walker.

Every measure compares pixels with the simulator's drawings, on any map that the model has made.

Shapes: N pictures, H = W = 128 pixels, T whole tiles of a picture, K kinds, P palettes
(`biome * len(Hour) + hour`).
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from reverie.models.pocket.simulator.biomes import Biome, Hour
from reverie.models.pocket.simulator.palettes import palettes
from reverie.models.pocket.simulator.simulator import (
    CELL_PX,
    FRAME_PX,
    WALKER_LEFT_PX,
    WALKER_TOP_PX,
    WorldState,
)
from reverie.models.pocket.simulator.terrain import Tile
from reverie.models.pocket.simulator.tiles import TILE_PX, atlas, texture_of
from reverie.models.pocket.simulator.walker import (
    TRANSPARENT,
    WALKER_HEIGHT_PX,
    WALKER_WIDTH_PX,
    Facing,
    sprites,
)

LEGIBLE_DB = 20.0
WALKER_DB = 15.0
UNREAD = 255
"""Stands for the kind of a tile that the walker covers in part."""

_TILES = FRAME_PX // TILE_PX - 1  # along one side; the last one may be cut
_PALETTES = len(Biome) * len(Hour)
_STRIDES = 2

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class PictureReading:
    """What was read from N pictures.

    Attributes:
        legal: whole tiles at `LEGIBLE_DB` or nearer to a drawing in the requested colours: [N].
        readable: whole tiles that the walker does not cover: [N].
        kinds: the nearest kind of each of them in the nearest palette, else `UNREAD`: [N, T].
        coloured: whether the requested palette explains the picture best: [N].
        walker: whether he stands in the middle and looks the right way: [N].
    """

    legal: NDArray[np.int64]
    readable: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    coloured: NDArray[np.bool_]
    walker: NDArray[np.bool_]

    @property
    def commonest(self) -> NDArray[np.float64]:
        """Share of readable tiles that are of the commonest kind: [N]."""
        counts = [np.bincount(row[row != UNREAD], minlength=len(Tile)).max() for row in self.kinds]
        return np.array(counts) / self.readable


def psnr(made: NDArray[np.uint8], true: NDArray[np.uint8]) -> float:
    """Return the peak signal-to-noise ratio in dB; equal pictures have 100."""
    error = np.square(made.astype(np.float64) - true).mean()
    return float(10 * np.log10(255**2 / max(error, 255**2 * 1e-10)))


def read(frames_NHWC: NDArray[np.uint8], state: WorldState) -> PictureReading:
    """Read pictures that should show worlds like `state`, on any map."""
    rows = [_read_map(frame, state, row) for row, frame in enumerate(frames_NHWC)]
    return PictureReading(
        legal=np.array([row.legal for row in rows]),
        readable=np.array([row.readable for row in rows]),
        kinds=np.stack([row.kinds for row in rows]),
        coloured=np.array([row.coloured for row in rows]),
        walker=walkers(frames_NHWC, state),
    )


def walkers(frames_NHWC: NDArray[np.uint8], state: WorldState) -> NDArray[np.bool_]:
    """Tell whether the walker stands in the middle and looks the right way: [N]."""
    return np.array([_walker_right(frame, state, row) for row, frame in enumerate(frames_NHWC)])


@dataclass(frozen=True, slots=True)
class _MapReading:
    legal: int
    readable: int
    kinds: NDArray[np.uint8]
    coloured: bool


@cache
def _drawings(phase: int) -> Floats:
    """Return every kind in every palette: [P * K, TILE_PX * TILE_PX * 3]."""
    inks = atlas()[texture_of()][:, :, phase]
    drawn = np.stack([palettes()[b, h][inks[b]] for b in Biome for h in Hour])
    return drawn.reshape(_PALETTES * len(Tile), -1).astype(np.float32)


def _read_map(frame_HWC: NDArray[np.uint8], state: WorldState, row: int) -> _MapReading:
    top, left = (int(v) % 2 * CELL_PX for v in (state.y[row], state.x[row]))
    side = _TILES * TILE_PX
    cut = frame_HWC[top : top + side, left : left + side].astype(np.float32)
    tiles = cut.reshape(_TILES, TILE_PX, _TILES, TILE_PX, 3).swapaxes(1, 2)
    free = ~_under_walker(top, left)
    errors = _errors(tiles.reshape(_TILES**2, -1), int(state.clock[row]) % 2)[free]  # [T, P, K]
    asked = int(state.biome[row]) * len(Hour) + int(state.hour[row])
    nearest = int(errors.min(axis=-1).mean(axis=0).argmin())
    kinds = np.full(_TILES**2, UNREAD, np.uint8)
    kinds[free] = errors[:, nearest].argmin(axis=-1)
    legal = errors[:, asked].min(axis=-1) <= _largest_error(LEGIBLE_DB)
    return _MapReading(int(legal.sum()), int(free.sum()), kinds, nearest == asked)


def _errors(tiles: Floats, phase: int) -> Floats:
    """Return the mean squared error of each tile to each drawing: [T, P, K]."""
    drawings = _drawings(phase)
    squares = (tiles**2).sum(axis=1)[:, None] + (drawings**2).sum(axis=1)
    distances: Floats = (squares - 2 * tiles @ drawings.T) / tiles.shape[1]
    return distances.reshape(len(tiles), _PALETTES, len(Tile))


def _largest_error(db: float) -> float:
    return float(255**2 * 10 ** (-db / 10))


def _under_walker(top: int, left: int) -> NDArray[np.bool_]:
    start = np.arange(_TILES) * TILE_PX
    rows = (start + top < WALKER_TOP_PX + WALKER_HEIGHT_PX) & (
        start + top + TILE_PX > WALKER_TOP_PX
    )
    columns = (start + left < WALKER_LEFT_PX + WALKER_WIDTH_PX) & (
        start + left + TILE_PX > WALKER_LEFT_PX
    )
    return (rows[:, None] & columns[None, :]).reshape(-1)


def _walker_right(frame_HWC: NDArray[np.uint8], state: WorldState, row: int) -> bool:
    """Compare the pixels of the walker with all his drawings, in the requested colours."""
    down, right = WALKER_TOP_PX + WALKER_HEIGHT_PX, WALKER_LEFT_PX + WALKER_WIDTH_PX
    patch = frame_HWC[WALKER_TOP_PX:down, WALKER_LEFT_PX:right].astype(np.float32)
    colours = palettes()[state.biome[row], state.hour[row]].astype(np.float32)
    errors = np.empty((len(Facing), _STRIDES))
    for facing in Facing:
        for stride in range(_STRIDES):
            sprite = sprites()[facing, stride]
            his = sprite != TRANSPARENT
            errors[facing, stride] = np.square(patch[his] - colours[sprite[his]]).mean()
    best = errors.min(axis=1)
    return bool(best.argmin() == state.facing[row] and best.min() < _largest_error(WALKER_DB))
