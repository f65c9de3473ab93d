"""What can be said of a world, and whether it is true: facts, and the truth that they refer to.

The walker stands on one tile of the map, `((x + 8) // 2, (y + 8) // 2)` for a view that begins at
cell (x, y). What lies to the left is the row of tiles to the left of that one, what lies above the
column of tiles above it, and so on; `REACH` tiles of each are always in view as a whole. A tile
next to the walker's is one tile away. No fact is about tiles off these four lines.

Shapes: N worlds, T tiles in view along one axis.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from reverie.models.pocket.simulator.biomes import Action, Biome, Hour
from reverie.models.pocket.simulator.simulator import WorldState, tiles_in_view
from reverie.models.pocket.simulator.terrain import Tile
from reverie.models.pocket.simulator.walker import Facing

REACH = 3
_HIS_TILE = 4
"""Row and column of the walker's tile among the tiles in view; for even and odd views alike."""


class Slot(IntEnum):
    """What a look reads, apart from the tiles around the walker (`tile_slot`)."""

    BIOME = 0
    HOUR = 1
    WALKS = 2
    FACING = 3


class Direction(IntEnum):
    """One of the four lines of tiles that begin next to the walker."""

    LEFT = 0
    RIGHT = 1
    UP = 2
    DOWN = 3


SLOTS = len(Slot) + len(Direction) * REACH
"""Biome, hour, walks, facing, and the kinds of tile in every direction, nearest first."""


def tile_slot(direction: Direction, distance: int) -> int:
    """Return the slot of a tile that lies 1 to `REACH` tiles away."""
    return len(Slot) + direction * REACH + distance - 1


DIRECTION_OF: dict[Facing, Direction] = {
    Facing.LEFT: Direction.LEFT,
    Facing.RIGHT: Direction.RIGHT,
    Facing.UP: Direction.UP,
    Facing.DOWN: Direction.DOWN,
}


@dataclass(frozen=True, slots=True)
class IsBiome:
    """The land is of this biome."""

    biome: Biome


@dataclass(frozen=True, slots=True)
class IsHour:
    """It is this time of day."""

    hour: Hour


@dataclass(frozen=True, slots=True)
class Does:
    """The walker walks, or stands, and looks this way."""

    walks: bool
    facing: Facing


@dataclass(frozen=True, slots=True)
class Lies:
    """A tile of this kind lies in this direction.

    Attributes:
        distance: 1 to `REACH` tiles; None for anywhere within `REACH`.
    """

    kind: Tile
    direction: Direction
    distance: int | None


@dataclass(frozen=True, slots=True)
class Lacks:
    """No tile of this kind lies within `REACH` in this direction; None for in any of the four."""

    kind: Tile
    direction: Direction | None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A sentence without a fact that can be checked; it counts as untrue."""

    text: str


Fact = IsBiome | IsHour | Does | Lies | Lacks | Unreadable


@dataclass(frozen=True, slots=True)
class Truth:
    """What is true of one world.

    Attributes:
        walks: whether the last action was a move.
        lines: the kinds of tile in each `Direction`, nearest first.
    """

    biome: Biome
    hour: Hour
    walks: bool
    facing: Facing
    lines: tuple[tuple[Tile, ...], ...]

    def holds(self, fact: Fact) -> bool:
        """Tell whether a fact is true."""
        match fact:
            case IsBiome(biome):
                return biome == self.biome
            case IsHour(hour):
                return hour == self.hour
            case Does(walks, facing):
                return (walks, facing) == (self.walks, self.facing)
            case Lies(kind, direction, None):
                return kind in self.lines[direction]
            case Lies(kind, direction, distance) if distance is not None:
                return 1 <= distance <= REACH and self.lines[direction][distance - 1] == kind
            case Lacks(kind, None):
                return all(kind not in line for line in self.lines)
            case Lacks(kind, direction) if direction is not None:
                return kind not in self.lines[direction]
        return False

    def nearest(self, kind: Tile) -> Lies | None:
        """Return where the nearest tile of a kind lies; the first direction wins a tie."""
        found = [
            Lies(kind, direction, self.lines[direction].index(kind) + 1)
            for direction in Direction
            if kind in self.lines[direction]
        ]
        return min(found, key=lambda lies: lies.distance or 0, default=None)

    def runs(self, direction: Direction) -> tuple[Tile, ...]:
        """Return the kinds in a direction, in order, without immediate repetitions."""
        line = self.lines[direction]
        return tuple(kind for i, kind in enumerate(line) if not i or line[i - 1] != kind)


def truths(
    state: WorldState, actions: NDArray[np.int64], tiles: NDArray[np.uint8] | None = None
) -> list[Truth]:
    """Return what is true of N worlds.

    Args:
        state: the worlds after their last step.
        actions: what the walkers did in it, `Action` values [N]; `WAIT` before the first step.
        tiles: the tiles in view, [N, T, T], instead of `tiles_in_view(state)`.
    """
    tiles = tiles_in_view(state) if tiles is None else tiles
    span = np.arange(1, REACH + 1)
    lines = np.empty((len(state), len(Direction), REACH), np.uint8)
    lines[:, Direction.LEFT] = tiles[:, _HIS_TILE, _HIS_TILE - span]
    lines[:, Direction.RIGHT] = tiles[:, _HIS_TILE, _HIS_TILE + span]
    lines[:, Direction.UP] = tiles[:, _HIS_TILE - span, _HIS_TILE]
    lines[:, Direction.DOWN] = tiles[:, _HIS_TILE + span, _HIS_TILE]
    return [
        Truth(
            Biome(int(state.biome[row])),
            Hour(int(state.hour[row])),
            bool(actions[row] != Action.WAIT),
            Facing(int(state.facing[row])),
            tuple(tuple(Tile(int(kind)) for kind in line) for line in lines[row]),
        )
        for row in range(len(state))
    ]
