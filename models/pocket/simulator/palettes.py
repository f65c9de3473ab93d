"""Colours: one palette of `COLOURS` entries for each biome and hour.

Textures hold palette indices (`Ink`), so a biome or an hour recolours the map and moves nothing.
"""

from enum import IntEnum
from functools import cache

import numpy as np
from numpy.typing import NDArray

from reverie.models.pocket.simulator.biomes import Biome, Hour


class Ink(IntEnum):
    """An entry of a palette."""

    WATER = 0
    WAVE = 1
    SHORE = 2
    PEBBLE = 3
    GROUND = 4
    GRASS = 5
    LEAF_DARK = 6
    LEAF = 7
    TRUNK = 8
    ROCK_DARK = 9
    ROCK = 10
    FLOWER = 11
    PATH = 12
    PAVING = 13
    WALL = 14
    LAMP = 15
    OUTLINE = 16
    HAT = 17
    COAT = 18
    SKIN = 19


COLOURS = len(Ink)

_COUNTRY: dict[Biome, str] = {
    Biome.MEADOW: """2f6fd0 7fb4ff e8d48a c9ad5c 63b548 4f9a38 1f5f2a 3f9140 6b4423 6d7178 a9adb3
        ff5d7a b98a54 98703f c9483b ffe27a""",
    Biome.SNOW: """3f7fb0 a8d8f0 b9c7dc 93a5c4 f2f6fa d5e0ee 1f4a4f 4f8a86 5a4638 5d6b86 9fb0c8
        d04a6a c8bfae a59a88 7a3b3b ffd27a""",
    Biome.DESERT: """1fa3a0 8ff0e0 c98f4e a8713a f0cf82 ddb664 2f6b34 62a548 3f5a2a 8a4b32 c07a50
        ff4fa0 fff0c8 d8c49a b5622f 7fe0ff""",
    Biome.AUTUMN: """2a5580 6f9cc8 d8b98a b08f60 b0843a 936a2a 8f2a14 e0641a 4a2c18 57504a 948a80
        ffd21f 7a5638 5e3f28 6a2a3a ffe9a0""",
    Biome.SWAMP: """2e4a3a 6a9a5a 6f6038 54482a 5f7a2e 4b6224 1c3a24 3f6b3a 3a2a1c 454a3e 7a806a
        c070ff 9a8558 7c6a44 4a3a30 b8ff6a""",
    Biome.VOLCANO: """e04a10 ffc23a 6a2a20 4a1a16 3a343a 2a252a 1a1416 5a4038 0f0c0e 6a6068 a0949c
        ff7a1a 8a7468 6a5850 7a1f1f ffe04a""",
    Biome.NEON: """101a5a 20d0ff 3a3a5a 2a2a44 2a1a44 3a2660 5a0f7a ff3fd0 2f9fff 3a4a6a 6a86b0
        3fff9a 50507a 3a3a60 1f1f6a fff03f""",
    Biome.CANDY: """6fd0e8 d8ffff fff0f8 f0c0dc ffb0d0 f590bc b03a8a ff5fb8 fff8ff 8a5ad0 c09aff
        fff36a e8b888 c89060 7a4a2a fffad0""",
}
_WALKER = "20182a e03030 2f58d8 ffd0a0"
_GLOWING: dict[Biome, tuple[Ink, ...]] = {
    Biome.VOLCANO: (Ink.WATER, Ink.WAVE),
    Biome.NEON: (Ink.LEAF, Ink.TRUNK, Ink.FLOWER, Ink.WAVE),
}
_LIGHT: dict[Hour, tuple[float, float, float]] = {
    Hour.DAY: (1.0, 1.0, 1.0),
    Hour.DUSK: (1.0, 0.74, 0.62),
    Hour.NIGHT: (0.38, 0.46, 0.72),
}
_WALKER_SHARE = 0.5  # how much of the hour's darkening the walker takes, so that he stays legible


def _parse(colours: str) -> NDArray[np.float64]:
    return np.array(
        [[int(word[i : i + 2], 16) for i in (0, 2, 4)] for word in colours.split()], float
    )


@cache
def palettes() -> NDArray[np.uint8]:
    """Return the colours of every biome and hour: [biomes, hours, inks, RGB]."""
    table = np.zeros((len(Biome), len(Hour), COLOURS, 3))
    for biome in Biome:
        colours = np.concatenate([_parse(_COUNTRY[biome]), _parse(_WALKER)])
        for hour in Hour:
            light = np.array(_LIGHT[hour])
            factor = np.tile(light, (COLOURS, 1))
            factor[Ink.OUTLINE :] = 1 + (light - 1) * _WALKER_SHARE
            factor[[Ink.LAMP, *_GLOWING.get(biome, ())]] = 1.0
            table[biome, hour] = colours * factor
    result = table.round().astype(np.uint8)
    result.setflags(write=False)
    return result
