"""New land from noise: the noise of a new tile's cells decides its kind.

A few denoise steps cannot choose between kinds of tile: they paint the mean of all that may come,
and walks end in land of one kind. So training pairs noise and land: the kinds that can lie next to
a known tile divide the real line by their probabilities, and the noise of one cell of a new tile
falls into the part of the kind that comes. Noise stays standard normal for any known neighbour, so
the sampler needs no change, and draws maps with the neighbourhoods of the true ones.

Shapes: Z channels on a grid of S x S cells, T tiles in view along one axis, K kinds.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray

from reverie.models.pocket.network.noise_features import TELLING_CHANNELS
from reverie.models.pocket.simulator.biomes import Action
from reverie.models.pocket.simulator.simulator import CELL_PX, FRAME_PX
from reverie.models.pocket.simulator.terrain import Tile, tiles_at

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

CELLS = FRAME_PX // CELL_PX
ORDER = (
    Tile.WATER, Tile.SHORE, Tile.PATH, Tile.GROUND, Tile.FLOWER, Tile.HOUSE, Tile.TREE, Tile.ROCK,
)  # fmt: skip
"""From low noise to high; kinds that look similar or are often neighbours are near each other."""
_SAMPLES = 40_000
_LEAST = 1e-3


@cache
def shares() -> NDArray[np.float64]:
    """Return cumulative probabilities, in `ORDER`, of a tile next to each kind: [K, K + 1]."""
    rng = np.random.default_rng(0)
    seed = rng.integers(2**31, size=_SAMPLES)
    x, y = rng.integers(-2000, 2000, size=(2, _SAMPLES))
    counts = np.full((len(Tile), len(Tile)), _LEAST * _SAMPLES / len(Tile))
    for dx, dy in ((0, 1), (1, 0), (0, -1), (-1, 0)):
        np.add.at(counts, (tiles_at(seed, x, y), tiles_at(seed, x + dx, y + dy)), 1)
    ordered = counts[:, list(ORDER)] / counts.sum(axis=1, keepdims=True)
    table = np.concatenate([np.zeros((len(Tile), 1)), ordered.cumsum(axis=1)], axis=1)
    table[:, -1] = 1
    table.setflags(write=False)
    return table


@dataclass(frozen=True, slots=True)
class Strip:
    """The edge of a frame where tiles come into view, half a tile deep.

    Attributes:
        cells: index of the strip in latents [Z, S, S]: gives [Z, S].
        tiles: index of the new tiles in [T, T]: gives [T].
        neighbours: index of their known neighbours.
        tile_of: which of the T tiles each of the S cells belongs to.
    """

    cells: tuple[slice | int, ...]
    tiles: tuple[slice | int, ...]
    neighbours: tuple[slice | int, ...]
    tile_of: Ints

    @property
    def shown(self) -> Ints:
        """Which of the T tiles the strip shows."""
        return np.unique(self.tile_of)

    @property
    def telling(self) -> Ints:
        """The cell of each shown tile whose noise decides: the one with the even number."""
        even = np.arange(CELLS) % 2 == 0
        first = np.array([np.flatnonzero(self.tile_of == tile)[0] for tile in self.shown])
        last = np.array([np.flatnonzero(self.tile_of == tile)[-1] for tile in self.shown])
        return np.where(even[last], last, first)

    def numbers(self, noise_ZSS: Floats) -> NDArray[np.float64]:
        """Read a standard normal number for each shown tile."""
        told = noise_ZSS[:TELLING_CHANNELS][self.cells][:, self.telling]
        total: NDArray[np.float64] = told.sum(axis=0, dtype=np.float64)
        total /= np.sqrt(TELLING_CHANNELS)
        return total


def new_strip(action: int, x: int, y: int) -> Strip | None:
    """Return where tiles come into view with a step that ends at (x, y); None if none do."""
    if action in (Action.LEFT, Action.RIGHT) and x % 2:
        end = action == Action.RIGHT
        tile_of = (np.arange(CELLS) + y % 2) // 2
        cell, tile, neighbours = (CELLS - 1, -1, -2) if end else (0, 0, 1)
        every = slice(None)
        return Strip((every, every, cell), (every, tile), (every, neighbours), tile_of)
    if action in (Action.UP, Action.DOWN) and y % 2:
        end = action == Action.DOWN
        tile_of = (np.arange(CELLS) + x % 2) // 2
        cell, tile, neighbours = (CELLS - 1, -1, -2) if end else (0, 0, 1)
        return Strip((slice(None), cell), (tile,), (neighbours,), tile_of)
    return None


def kinds_of(noise_ZSS: Floats, strip: Strip, tiles_TT: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Read the new tiles from the noise, next to the known ones of `tiles_TT`: [shown]."""
    share = torch.special.ndtr(torch.from_numpy(strip.numbers(noise_ZSS))).numpy()
    bounds = shares()[tiles_TT[strip.neighbours][strip.shown]]
    place = (share[:, None] >= bounds[:, 1:-1]).sum(axis=1)
    kinds: NDArray[np.uint8] = np.array(ORDER, np.uint8)[place]
    return kinds


def pair(
    noise_ZSS: Floats, strip: Strip, tiles_TT: NDArray[np.uint8], rng: np.random.Generator
) -> None:
    """Move noise, in place, so that it means the new tiles in `tiles_TT`."""
    place = np.argsort(ORDER)[tiles_TT[strip.tiles][strip.shown]]
    bounds = shares()[tiles_TT[strip.neighbours][strip.shown]]
    row = np.arange(len(place))
    low, high = bounds[row, place], bounds[row, place + 1]
    share = (low + (high - low) * rng.random(len(place))).clip(1e-5, 1 - 1e-5)
    goal = torch.special.ndtri(torch.from_numpy(share)).numpy()
    change = (goal - strip.numbers(noise_ZSS)) / np.sqrt(TELLING_CHANNELS)
    noise_ZSS[:TELLING_CHANNELS][strip.cells][:, strip.telling] += change.astype(np.float32)


def pair_all(
    noise_BFZSS: Floats,
    actions_BF: Ints,
    places_BF2: Ints,
    tiles_BFTT: NDArray[np.uint8],
    rng: np.random.Generator,
) -> None:
    """Pair the noise of whole clips with the tiles that come into view in them, in place."""
    for clip, frame in np.ndindex(*actions_BF.shape):
        at = (clip, frame)
        strip = new_strip(int(actions_BF[at]), *(int(v) for v in places_BF2[at]))
        if strip is not None:
            pair(noise_BFZSS[at], strip, tiles_BFTT[at], rng)
