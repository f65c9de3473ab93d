"""The biomes and hours of the pocket world, and the walker's actions."""

from enum import IntEnum


class Biome(IntEnum):
    """A kind of land: one palette and one kind of tree and house."""

    MEADOW = 0
    SNOW = 1
    DESERT = 2
    AUTUMN = 3
    SWAMP = 4
    VOLCANO = 5
    NEON = 6
    CANDY = 7


class Hour(IntEnum):
    """A time of day: one colour factor over the whole picture."""

    DAY = 0
    DUSK = 1
    NIGHT = 2


class Action(IntEnum):
    """What the walker does in one step; a move shifts the map by `CELL_PX` pixels."""

    WAIT = 0
    UP = 1
    DOWN = 2
    LEFT = 3
    RIGHT = 4
