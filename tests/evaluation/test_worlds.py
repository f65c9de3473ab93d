"""The worlds that are measured."""

import numpy as np

from reverie.evaluation.worlds import Stream, draw_worlds, true_states
from reverie.models.pocket.simulator.biomes import Biome, Hour
from reverie.models.pocket.simulator.captions import read_caption
from reverie.models.pocket.training.states import SEEDS, random_states
from reverie.models.pocket.world.first_frame import MAP_SEEDS

MOST = 200


def test_no_training_walks_on_the_maps_that_are_measured() -> None:
    trained = random_states(np.random.default_rng(0), 10_000).seed
    assert trained.max() < SEEDS < MAP_SEEDS
    for stream in Stream:
        measured = true_states(draw_worlds(stream, MOST)).seed
        assert measured.min() >= SEEDS
        assert measured.max() < MAP_SEEDS


def test_no_two_purposes_share_a_map() -> None:
    seeds = [int(seed) for s in Stream for seed in true_states(draw_worlds(s, MOST)).seed]
    assert len(set(seeds)) == len(Stream) * MOST


def test_twenty_four_worlds_have_every_biome_at_every_hour() -> None:
    worlds = draw_worlds(Stream.WALKS, 24)
    assert {(w.biome, w.hour) for w in worlds} == {(b, h) for b in Biome for h in Hour}
    assert len({w.biome for w in worlds[:8]}) == 8


def test_prompts_name_what_the_world_is() -> None:
    for world in draw_worlds(Stream.PROMPTS, 48):
        named = read_caption(world.prompt)
        assert (named.biome, named.hour) == (world.biome, world.hour)
