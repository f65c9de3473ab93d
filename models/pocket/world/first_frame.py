"""The first frame of a session: one picture of the simulator, chosen by seed and prompt."""

import numpy as np
from numpy.typing import NDArray

from reverie.models.pocket.simulator.biomes import Biome, Hour
from reverie.models.pocket.simulator.simulator import WorldState, initial_state, render

_STREAM = 3
MAP_SEEDS = 2**32
"""Number of maps. Training walks on the lower half of them (`training/states.py`), so every second
seed leads to a map that the model never saw."""


def first_state(seed: int, biome: Biome | None, hour: Hour | None) -> WorldState:
    """Return the world that a session starts in; the seed chooses a biome or hour that is None."""
    rng = np.random.default_rng([seed, _STREAM])
    drawn_biome, drawn_hour = rng.integers(len(Biome)), rng.integers(len(Hour))
    return initial_state(
        np.array([seed % MAP_SEEDS]),
        np.array([drawn_biome if biome is None else int(biome)]),
        np.array([drawn_hour if hour is None else int(hour)]),
    )


def first_frame(seed: int, biome: Biome | None, hour: Hour | None) -> NDArray[np.uint8]:
    """Render the start of the map of a seed (not negative): uint8 [H, W, 3]."""
    frame: NDArray[np.uint8] = render(first_state(seed, biome, hour))[0]
    return frame
