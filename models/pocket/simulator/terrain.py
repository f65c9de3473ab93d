"""The endless map: which kind of tile lies where, from hashed value noise."""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class Tile(IntEnum):
    """What covers one tile of the map."""

    WATER = 0
    SHORE = 1
    GROUND = 2
    TREE = 3
    ROCK = 4
    FLOWER = 5
    PATH = 6
    HOUSE = 7


Ints = NDArray[np.int64]
Floats = NDArray[np.float32]

_WATER_BELOW = 0.40
_SHORE_BELOW = 0.455
_ROCK_ABOVE = 0.68
_TREE_ABOVE = 0.56
_PATH_WIDTH = 0.035


def hashed(seed: Ints, x: Ints, y: Ints, salt: int) -> Floats:
    """Hash lattice points to uniform numbers in [0, 1)."""
    h = (seed * 0x9E3779B1 + salt * 0x7FEB352D).astype(np.uint32)
    h = h ^ (x * 0x85EBCA77).astype(np.uint32)
    h = (h ^ (h >> np.uint32(15))) * np.uint32(0x2C1B3C6D)
    h = h ^ (y * 0xC2B2AE3D).astype(np.uint32)
    h = (h ^ (h >> np.uint32(12))) * np.uint32(0x297A2D39)
    h = (h ^ (h >> np.uint32(15))) * np.uint32(0x85EBCA6B)
    h = h ^ (h >> np.uint32(13))
    return (h >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def value_noise(seed: Ints, x: Ints, y: Ints, spacing: int, salt: int) -> Floats:
    """Interpolate hashed values on a lattice of `spacing` tiles; the result lies in [0, 1)."""
    ix, iy = x // spacing, y // spacing
    fx = ((x - ix * spacing) / spacing).astype(np.float32)
    fy = ((y - iy * spacing) / spacing).astype(np.float32)
    wx, wy = fx * fx * (3 - 2 * fx), fy * fy * (3 - 2 * fy)
    top = hashed(seed, ix, iy, salt) * (1 - wx) + hashed(seed, ix + 1, iy, salt) * wx
    bottom = hashed(seed, ix, iy + 1, salt) * (1 - wx) + hashed(seed, ix + 1, iy + 1, salt) * wx
    result: Floats = (top * (1 - wy) + bottom * wy).astype(np.float32)
    return result


def tiles_at(seed: Ints, x: Ints, y: Ints) -> NDArray[np.uint8]:
    """Return the `Tile` at tile coordinates (x, y) of the map of `seed`; shapes broadcast."""
    seed, x, y = np.broadcast_arrays(seed, x, y)
    height = 0.62 * value_noise(seed, x, y, 6, 1) + 0.38 * value_noise(seed, x, y, 3, 2)
    damp = value_noise(seed, x, y, 4, 3)
    ridge = value_noise(seed, x, y, 9, 4)
    chance = hashed(seed, x, y, 5)
    kinds = np.full(x.shape, Tile.GROUND, np.uint8)
    kinds[chance < 0.10] = Tile.FLOWER
    kinds[(damp > _TREE_ABOVE) & (chance > 0.25)] = Tile.TREE
    kinds[(height > _ROCK_ABOVE) & (chance > 0.3)] = Tile.ROCK
    kinds[np.abs(ridge - 0.5) < _PATH_WIDTH] = Tile.PATH
    kinds[chance > 0.975] = Tile.HOUSE
    kinds[height < _SHORE_BELOW] = Tile.SHORE
    kinds[height < _WATER_BELOW] = Tile.WATER
    return kinds
