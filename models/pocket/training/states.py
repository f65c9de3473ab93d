"""Random worlds and random walks: pure functions of a numpy generator."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from reverie.models.pocket.simulator.biomes import Action, Biome, Hour
from reverie.models.pocket.simulator.simulator import WorldState, initial_state
from reverie.models.pocket.simulator.walker import Facing

Ints = NDArray[np.int64]

SEEDS = 2**31
_FAR_CELLS = 2000
_OPPOSITE = np.array([Action.WAIT, Action.DOWN, Action.UP, Action.RIGHT, Action.LEFT])


def random_states(rng: np.random.Generator, count: int) -> WorldState:
    """Draw worlds with a walker at a random place."""
    state = initial_state(
        rng.integers(SEEDS, size=count),
        rng.integers(len(Biome), size=count),
        rng.integers(len(Hour), size=count),
    )
    return replace(
        state,
        x=rng.integers(-_FAR_CELLS, _FAR_CELLS, count),
        y=rng.integers(-_FAR_CELLS, _FAR_CELLS, count),
        facing=rng.integers(len(Facing), size=count),
        stride=rng.integers(2, size=count),
        clock=rng.integers(2, size=count),
    )


def random_actions(rng: np.random.Generator, count: int, frames: int) -> Ints:
    """Draw the actions of walkers: [count, frames].

    A third of them act at random; the others walk straight, turn once, go back, or stand still.
    """
    anything = rng.integers(len(Action), size=(count, frames))
    straight = np.repeat(rng.integers(1, len(Action), size=(count, 1)), frames, axis=1)
    before = np.arange(frames) < rng.integers(1, frames + 1, size=(count, 1))
    turning = np.where(before, straight, anything[:, :1])
    returning = np.where(before, straight, _OPPOSITE[straight])
    habits = np.stack([anything, straight, turning, returning, np.zeros_like(anything)])
    habit = rng.choice(len(habits), size=count, p=[0.34, 0.24, 0.18, 0.14, 0.10])
    return habits[habit, np.arange(count)]
