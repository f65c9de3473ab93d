from dataclasses import replace

import numpy as np

from reverie.models.pocket.simulator import render
from reverie.models.pocket.training.legibility import read
from reverie.models.pocket.training.states import random_states

STATE = random_states(np.random.default_rng(2), 8)


def test_true_frames_are_legible() -> None:
    found = read(render(STATE), STATE)
    assert (found.tiles == 1).all()
    assert found.coloured.all()
    assert found.walker.all()


def test_an_even_grey_is_not() -> None:
    found = read(np.full((8, 128, 128, 3), 128, np.uint8), STATE)
    assert found.tiles.mean() < 0.2
    assert not found.walker.any()


def test_other_colours_are_told_apart() -> None:
    other = replace(STATE, biome=(STATE.biome + 1) % 8)
    assert not read(render(other), STATE).coloured.any()


def test_a_walker_who_looks_the_other_way_is_wrong() -> None:
    other = replace(STATE, facing=STATE.facing ^ 1)
    assert not read(render(other), STATE).walker.any()


def test_the_same_map_in_other_colours_has_the_same_kinds() -> None:
    night = replace(STATE, hour=(STATE.hour + 1) % 3)
    assert np.array_equal(read(render(night), night).kinds, read(render(STATE), STATE).kinds)
