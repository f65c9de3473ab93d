"""What is read in pictures, held against the simulator's own."""

from dataclasses import replace

import numpy as np
import pytest

from reverie.evaluation.reading import UNREAD, psnr, read
from reverie.models.pocket.simulator.biomes import Biome, Hour
from reverie.models.pocket.simulator.palettes import palettes
from reverie.models.pocket.simulator.simulator import (
    WALKER_LEFT_PX,
    WALKER_TOP_PX,
    initial_state,
    render,
    tiles_in_view,
)
from reverie.models.pocket.simulator.terrain import Tile
from reverie.models.pocket.simulator.tiles import TILE_PX, atlas, texture_of
from reverie.models.pocket.training.states import random_states

STATE = random_states(np.random.default_rng(2), 24)
FRAMES = render(STATE)
PAIRS = np.arange(24)
EVERYWHERE = initial_state(PAIRS, PAIRS % len(Biome), PAIRS % len(Hour))


def test_in_true_pictures_everything_is_right() -> None:
    found = read(FRAMES, STATE)
    assert (found.legal == found.readable).all()
    assert found.readable.min() >= 40
    assert found.coloured.all()
    assert found.walker.all()


def test_true_pictures_have_the_kinds_of_their_map() -> None:
    found = read(render(EVERYWHERE), EVERYWHERE)
    true = tiles_in_view(EVERYWHERE)[:, :7, :7].reshape(24, -1)  # no tile is cut at the origin
    readable = found.kinds != UNREAD
    assert np.array_equal(found.kinds[readable], true[readable])
    assert readable.sum(axis=1).tolist() == found.readable.tolist()


def test_in_an_even_grey_nothing_is() -> None:
    found = read(np.full((24, 128, 128, 3), 128, np.uint8), STATE)
    assert found.legal.sum() / found.readable.sum() < 0.2
    assert not found.walker.any()


@pytest.mark.parametrize("tile", Tile)
def test_a_missing_walker_is_noticed_on_every_kind_of_tile(tile: Tile) -> None:
    inks = atlas()[texture_of()[EVERYWHERE.biome, tile], 0]
    ground = palettes()[EVERYWHERE.biome, EVERYWHERE.hour][PAIRS[:, None, None], inks]
    land = np.tile(ground, (1, 128 // TILE_PX, 128 // TILE_PX, 1))
    assert not read(land, EVERYWHERE).walker.any()


def test_a_walker_in_the_wrong_place_is_noticed() -> None:
    moved = FRAMES.copy()
    place = np.s_[:, WALKER_TOP_PX : WALKER_TOP_PX + 24, :]
    moved[place] = np.roll(FRAMES[place], 16, axis=2)
    assert WALKER_LEFT_PX % 16
    assert not read(moved, STATE).walker.any()


def test_a_walker_who_looks_the_other_way_is_wrong() -> None:
    other = replace(STATE, facing=STATE.facing ^ 1)
    assert not read(render(other), STATE).walker.any()


def test_other_colours_are_classify() -> None:
    for other in (
        replace(STATE, biome=(STATE.biome + 1) % 8),
        replace(STATE, hour=(STATE.hour + 1) % 3),
    ):
        assert not read(render(other), STATE).coloured.any()


def test_the_same_map_in_other_colours_has_the_same_kinds() -> None:
    night = replace(STATE, hour=(STATE.hour + 1) % 3)
    assert np.array_equal(read(render(night), night).kinds, read(FRAMES, STATE).kinds)
    assert np.array_equal(read(render(night), STATE).kinds, read(FRAMES, STATE).kinds)


def test_damage_counts_by_the_tile() -> None:
    damaged = FRAMES.copy()
    top, left = int(STATE.y[0]) % 2 * 8, int(STATE.x[0]) % 2 * 8
    damaged[0, top : top + 16, left : left + 32] = (
        255 - damaged[0, top : top + 16, left : left + 32]
    )
    found = read(damaged, STATE)
    assert found.readable[0] - found.legal[0] == 2
    assert (found.legal[1:] == found.readable[1:]).all()


def test_the_commonest_kind_is_counted_among_those_that_can_be_read() -> None:
    flooded = render(EVERYWHERE, np.full((24, 9, 9), Tile.WATER, np.uint8))
    assert (read(flooded, EVERYWHERE).commonest == 1).all()
    assert 0.2 < read(FRAMES, STATE).commonest.mean() < 0.7


def test_noise_of_a_tenth_is_twenty_decibels() -> None:
    grey = np.full((4, 4, 3), 100, np.uint8)
    assert psnr(grey, grey) == pytest.approx(100)
    assert psnr(grey + np.uint8(25), grey) == pytest.approx(20.17, abs=0.01)
