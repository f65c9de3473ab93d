"""What pocket reads from a picture, with the weights that ship."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import torch

from reverie.models.contract.controls import MediaInput
from reverie.models.pocket.checkpoint import load_pocket
from reverie.models.pocket.network.networks import PocketNets
from reverie.models.pocket.simulator.biomes import Action, Biome, Hour
from reverie.models.pocket.simulator.simulator import advance, initial_state, render
from reverie.models.pocket.world.input_frames import action_between, latents_of, likely_place


@cache
def nets() -> PocketNets:
    return load_pocket(None, torch.device("cpu"), torch.float32)


def walk(actions: list[Action], seed: int = 5) -> list[MediaInput]:
    """Return what is seen on a walk."""
    state = initial_state(np.array([seed]), np.array([0]), np.array([0]))
    pictures = [render(state)[0]]
    for action in actions:
        state = advance(state, np.array([int(action)]))
        pictures.append(render(state)[0])
    return [MediaInput(number, picture) for number, picture in enumerate(pictures)]


def test_what_the_walker_did_is_read_from_how_the_land_moves() -> None:
    actions = [Action.RIGHT, Action.DOWN, Action.WAIT, Action.LEFT, Action.UP, Action.UP]
    latents_FZhw = latents_of(walk(actions), nets())
    read = [action_between(before, after) for before, after in pairwise(latents_FZhw)]
    assert read == actions


@pytest.mark.parametrize("hour", list(Hour))
@pytest.mark.parametrize("biome", list(Biome))
def test_biome_and_hour_are_read_from_the_colours(biome: Biome, hour: Hour) -> None:
    state = initial_state(np.array([11]), np.array([int(biome)]), np.array([int(hour)]))
    assert likely_place(render(state)[0]) == (biome, hour)


def test_latents_of_pictures_outlive_each_other() -> None:
    first, second = latents_of(walk([Action.RIGHT]), nets())
    kept = second.clone()
    first.zero_()
    assert torch.equal(second, kept)
