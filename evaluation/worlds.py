"""The measured worlds: maps that are not in the training data, in every biome and hour.

Training draws its maps below `SEEDS` of `training/states.py`. The kernel makes the map of a session
from its seed, and all seeds here lead to maps from `SEEDS` on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from reverie.models.pocket.simulator.biomes import Biome, Hour
from reverie.models.pocket.simulator.captions import read_caption, whole_caption
from reverie.models.pocket.simulator.simulator import WorldState, stack_states
from reverie.models.pocket.training.states import SEEDS
from reverie.models.pocket.world.first_frame import first_state

_FIRST_SEED = SEEDS + 987_654
_STREAM_SEEDS = 100_000
_STRIDE = 5  # through the pairs of biome and hour, so that even a few worlds differ


class Stream(IntEnum):
    """The purposes of worlds; no two purposes share a map."""

    ACTIONS = 0
    PROMPTS = 1
    WALKS = 2
    SHORT_WALKS = 3
    STILL = 4
    MEMORY = 5
    SPEED = 6
    STRIP = 7
    NARRATION = 8


@dataclass(frozen=True, slots=True)
class EvaluatedWorld:
    """One session to open.

    Attributes:
        number: unique within its stream.
        seed: of the session.
        prompt: names the biome and the hour.
    """

    number: int
    seed: int
    prompt: str
    biome: Biome
    hour: Hour

    def under(self, prompt: str) -> "EvaluatedWorld":
        """Return the same world under a prompt that names biome and hour.

        Raises:
            ValueError: the prompt leaves the biome or the hour open.
        """
        named = read_caption(prompt)
        if named.biome is None or named.hour is None:
            raise ValueError(f"the prompt {prompt!r} must name a biome and an hour")
        return EvaluatedWorld(self.number, self.seed, prompt, named.biome, named.hour)


def draw_worlds(stream: Stream, count: int) -> tuple[EvaluatedWorld, ...]:
    """Return the first `count` worlds of a stream; 24 of them have every biome at every hour."""
    return tuple(_world(stream, number) for number in range(count))


def _world(stream: Stream, number: int) -> EvaluatedWorld:
    pair = number * _STRIDE % (len(Biome) * len(Hour))
    biome, hour = Biome(pair % len(Biome)), Hour(pair % len(Hour))
    seed = _FIRST_SEED + stream * _STREAM_SEEDS + number
    caption = whole_caption(np.random.default_rng(seed), biome, hour)
    return EvaluatedWorld(number, seed, caption.text, biome, hour)


def true_states(worlds: Sequence[EvaluatedWorld]) -> WorldState:
    """Return the simulator's state of the first frames of sessions in these worlds."""
    return stack_states([first_state(world.seed, world.biome, world.hour) for world in worlds])
