import numpy as np
import pytest
from numpy.typing import NDArray

from reverie.models.pocket.simulator.biomes import Action
from reverie.models.pocket.simulator.simulator import advance
from reverie.models.pocket.simulator.terrain import Tile
from reverie.models.pocket.training.clips import Clips, make_clips
from reverie.models.pocket.training.noise_pairing import kinds_of, new_strip, pair_all, shares
from reverie.models.pocket.training.states import random_states

SEED = 6


def paired() -> tuple[Clips, NDArray[np.float32]]:
    rng = np.random.default_rng(SEED)
    clips = make_clips(rng, 60, 5)
    noise = rng.standard_normal((60, 5, 8, 16, 16)).astype(np.float32)
    pair_all(noise, clips.actions, clips.places, clips.tiles, rng)
    return clips, noise


def in_view(edge: int) -> NDArray[np.int64]:
    """Return which tiles of one axis a view shows, whole or in part, that begins at a cell."""
    return np.arange(edge // 2, (edge + 15) // 2 + 1)


@pytest.mark.parametrize("action", list(Action), ids=[a.name.lower() for a in Action])
def test_a_strip_is_where_unseen_tiles_appear(action: Action) -> None:
    before = random_states(np.random.default_rng(1), 40)
    after = advance(before, np.full(40, action))
    for row in range(40):
        strip = new_strip(action, int(after.x[row]), int(after.y[row]))
        rows = in_view(after.y[row])[:, None], in_view(before.y[row])
        columns = in_view(after.x[row])[:, None], in_view(before.x[row])
        seen = (rows[0] == rows[1]).any(axis=1)[:, None] & (columns[0] == columns[1]).any(axis=1)
        assert (strip is not None) == (not seen.all())
        if strip is not None:
            assert not seen[strip.tiles].any()
            assert seen[strip.neighbours].all()


def test_noise_says_what_comes_into_view() -> None:
    clips, noise = paired()
    for at in np.ndindex(60, 5):
        strip = new_strip(int(clips.actions[at]), *(int(v) for v in clips.places[at]))
        if strip is not None:
            read = kinds_of(noise[at], strip, clips.tiles[at])
            assert np.array_equal(read, clips.tiles[at][strip.tiles][strip.shown])


def test_paired_noise_is_still_standard_normal() -> None:
    clips, noise = paired()
    assert abs(noise.mean()) < 0.01
    assert abs(noise.std() - 1) < 0.01
    sums: list[float] = []
    for at in np.ndindex(60, 5):
        strip = new_strip(int(clips.actions[at]), *(int(v) for v in clips.places[at]))
        if strip is not None:
            sums.extend(strip.numbers(noise[at]))
    assert abs(np.mean(sums)) < 0.15
    assert abs(np.std(sums) - 1) < 0.15


def test_free_noise_gives_the_neighbourhoods_of_the_true_maps() -> None:
    rng = np.random.default_rng(3)
    water = np.full((9, 9), Tile.WATER, np.uint8)
    strip = new_strip(Action.RIGHT, 1, 0)
    assert strip is not None
    kinds = np.concatenate(
        [
            kinds_of(rng.standard_normal((8, 16, 16)).astype(np.float32), strip, water)
            for _ in range(300)
        ]
    )
    drawn = np.bincount(kinds, minlength=len(Tile)) / len(kinds)
    assert drawn[Tile.WATER] == pytest.approx(shares()[Tile.WATER, 1], abs=0.03)
    assert drawn[Tile.SHORE] == pytest.approx(np.diff(shares()[Tile.WATER, 1:3])[0], abs=0.03)
