"""The exact pocket world, in numpy: many walkers on endless maps.

Shapes: N worlds, H = W = `FRAME_PX` pixels, T = tiles in view along one axis.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reverie.models.pocket.simulator.biomes import Action
from reverie.models.pocket.simulator.palettes import palettes
from reverie.models.pocket.simulator.terrain import tiles_at
from reverie.models.pocket.simulator.tiles import TILE_PX, atlas, texture_of
from reverie.models.pocket.simulator.walker import (
    FACING_OF,
    TRANSPARENT,
    WALKER_HEIGHT_PX,
    WALKER_WIDTH_PX,
    Facing,
    sprites,
)

FRAME_PX = 128
CELL_PX = 8
WALKER_LEFT_PX = 56
WALKER_TOP_PX = 48
TILES_IN_VIEW = FRAME_PX // TILE_PX + 1

Ints = NDArray[np.int64]

_DX = np.array([0, 0, 0, -1, 1])
_DY = np.array([0, -1, 1, 0, 0])
_FACING = np.array([FACING_OF.get(a, -1) for a in Action])


@dataclass(frozen=True, slots=True)
class WorldState:
    """The truth of N worlds; every field is an int64 array of shape [N].

    Attributes:
        seed: which map.
        biome: a `Biome`.
        hour: an `Hour`.
        x: left edge of the view, in cells of `CELL_PX` pixels.
        y: top edge of the view, in cells.
        facing: a `Facing`.
        stride: 0 or 1, which leg is in front; changes with every move.
        clock: steps since the start; the water's phase is its lowest bit.
    """

    seed: Ints
    biome: Ints
    hour: Ints
    x: Ints
    y: Ints
    facing: Ints
    stride: Ints
    clock: Ints

    def __len__(self) -> int:
        return len(self.seed)


def initial_state(seeds: Ints, biomes: Ints, hours: Ints) -> WorldState:
    """Return worlds with a walker at the origin of each map, who looks down."""
    seed = np.asarray(seeds, np.int64)
    zero = np.zeros_like(seed)
    return WorldState(
        seed,
        np.asarray(biomes, np.int64),
        np.asarray(hours, np.int64),
        zero,
        zero,
        zero + int(Facing.DOWN),
        zero,
        zero,
    )


def advance(state: WorldState, actions: Ints) -> WorldState:
    """Return the worlds one step later; `actions` are `Action` values of shape [N]."""
    moves = actions != Action.WAIT
    return replace(
        state,
        x=state.x + _DX[actions],
        y=state.y + _DY[actions],
        facing=np.where(moves, _FACING[actions], state.facing),
        stride=np.where(moves, 1 - state.stride, state.stride),
        clock=state.clock + 1,
    )


def stack_states(states: list[WorldState]) -> WorldState:
    """Join states one after another along N."""
    names = WorldState.__dataclass_fields__
    return WorldState(*(np.concatenate([getattr(s, name) for s in states]) for name in names))


def tiles_in_view(state: WorldState) -> NDArray[np.uint8]:
    """Return the `Tile` kinds that a frame shows, whole or in part: [N, T, T] (rows, columns)."""
    span = np.arange(TILES_IN_VIEW)
    x = (state.x // 2)[:, None, None] + span[None, None, :]
    y = (state.y // 2)[:, None, None] + span[None, :, None]
    return tiles_at(state.seed[:, None, None], x, y)


def _inks(state: WorldState, tiles: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Paint palette indices: [N, H, W]."""
    textures = texture_of()[state.biome[:, None, None], tiles]
    phase = (state.clock & 1)[:, None, None]
    blocks = atlas()[textures, phase]  # [N, T, T, 16, 16]
    side = TILES_IN_VIEW * TILE_PX
    canvas = blocks.transpose(0, 1, 3, 2, 4).reshape(len(state), side, side)
    rows = (state.y % 2 * CELL_PX)[:, None] + np.arange(FRAME_PX)
    columns = (state.x % 2 * CELL_PX)[:, None] + np.arange(FRAME_PX)
    picture: NDArray[np.uint8] = canvas[
        np.arange(len(state))[:, None, None], rows[:, :, None], columns[:, None, :]
    ]
    sprite = sprites()[state.facing, state.stride]
    down, right = WALKER_TOP_PX + WALKER_HEIGHT_PX, WALKER_LEFT_PX + WALKER_WIDTH_PX
    patch = picture[:, WALKER_TOP_PX:down, WALKER_LEFT_PX:right]
    picture[:, WALKER_TOP_PX:down, WALKER_LEFT_PX:right] = np.where(
        sprite == TRANSPARENT, patch, sprite
    )
    return picture


def render(state: WorldState, tiles: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
    """Paint every world: RGB uint8 [N, H, W, 3].

    Args:
        state: the worlds.
        tiles: the tiles in view, instead of `tiles_in_view(state)`.
    """
    picture = _inks(state, tiles_in_view(state) if tiles is None else tiles)
    return palettes()[state.biome, state.hour][np.arange(len(state))[:, None, None], picture]


class Simulator:
    """The state of N worlds, which steps forward."""

    def __init__(self, seeds: Ints, biomes: Ints, hours: Ints) -> None:
        self.state = initial_state(seeds, biomes, hours)

    def step(self, actions: Ints) -> None:
        """Let every walker act once; `actions` are `Action` values of shape [N]."""
        self.state = advance(self.state, np.asarray(actions, np.int64))

    def change(self, biomes: Ints, hours: Ints) -> None:
        """Recolour the worlds; geometry, walker and clock stay."""
        self.state = replace(
            self.state, biome=np.asarray(biomes, np.int64), hour=np.asarray(hours, np.int64)
        )

    def render(self) -> NDArray[np.uint8]:
        """Paint every world as it is now: RGB uint8 [N, H, W, 3]."""
        return render(self.state)
