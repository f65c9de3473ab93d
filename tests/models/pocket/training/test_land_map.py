from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from reverie.models.pocket.checkpoint import load_pocket
from reverie.models.pocket.network.codec import PictureCodec
from reverie.models.pocket.simulator.biomes import Action, Hour
from reverie.models.pocket.simulator.simulator import WorldState, advance, render, tiles_in_view
from reverie.models.pocket.simulator.terrain import Tile
from reverie.models.pocket.training.land_map import (
    WHOLE,
    LandMap,
    carried,
    discovered,
    revised,
    true_map,
)
from reverie.models.pocket.training.legal_tiles import LegalTiles, TileReading
from reverie.models.pocket.training.states import random_states


@cache
def codec() -> PictureCodec:
    return load_pocket(dtype=torch.float32).codec


def worlds(count: int = 12) -> WorldState:
    return random_states(np.random.default_rng(8), count)


@torch.inference_mode()
def reading(state: WorldState, noise: float = 0.0) -> TileReading:
    pictures = torch.from_numpy(render(state)).permute(0, 3, 1, 2).float() / 255
    latents = codec().encode(pictures)
    generator = torch.Generator().manual_seed(3)
    latents += noise * torch.randn(latents.shape, generator=generator)
    return LegalTiles(codec()).read(latents, state)


@pytest.mark.parametrize("noise", [0.0, 0.3], ids=["clean", "noisy"])
def test_frames_are_read_back_as_the_map_that_they_show(noise: float) -> None:
    state = worlds()
    read = reading(state, noise)
    whole = read.cells == WHOLE
    assert (read.kinds == tiles_in_view(state))[whole].all()
    assert (read.palette == state.biome * len(Hour) + state.hour).all()
    assert read.errors.min(axis=-1)[whole].mean() == pytest.approx(noise**2, abs=0.03)


@pytest.mark.parametrize("action", list(Action), ids=[a.name.lower() for a in Action])
def test_land_moves_under_the_walker(action: Action) -> None:
    state = worlds()
    after = advance(state, np.full(len(state), action))
    moved = carried(true_map(state), state, after)
    assert np.array_equal(moved.kinds, tiles_in_view(after))


def test_what_the_model_made_up_stays_where_it_was_seen() -> None:
    state = replace(worlds(1), x=np.array([5]))
    land = true_map(state)
    made_up = LandMap(land.kinds.copy(), land.known)
    made_up.kinds[0, 4, 4] = (land.kinds[0, 4, 4] + 1) % len(Tile)
    after = advance(state, np.array([Action.RIGHT]))
    moved = carried(made_up, state, after)
    assert moved.kinds[0, 4, 3] == made_up.kinds[0, 4, 4]
    assert not moved.known[0, :, -1].any()
    assert moved.known[0, :, :-1].all()


def test_new_land_is_taken_from_the_picture_and_known_land_is_not() -> None:
    state = worlds()
    read = reading(state)
    wrong = ((tiles_in_view(state) + 1) % len(Tile)).astype(np.uint8)
    half = np.zeros(wrong.shape, bool)
    half[:, :, :4] = True
    found = discovered(LandMap(wrong, half), read)
    shown = read.cells > 0
    assert np.array_equal(found.kinds[half], wrong[half])
    assert np.array_equal(found.kinds[~half & shown], tiles_in_view(state)[~half & shown])


def test_known_land_is_given_up_when_the_picture_clearly_shows_another_kind() -> None:
    state = worlds(2)
    read = reading(state)
    wrong = ((tiles_in_view(state) + 1) % len(Tile)).astype(np.uint8)
    land = LandMap(wrong, np.ones(wrong.shape, bool))
    after = revised(land, read, np.array([True, False]))
    whole = read.cells[0] == WHOLE
    assert np.array_equal(after.kinds[0][whole], tiles_in_view(state)[0][whole])
    assert np.array_equal(after.kinds[1], wrong[1])
