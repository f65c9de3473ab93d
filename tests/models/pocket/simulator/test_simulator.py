import numpy as np

from reverie.models.pocket.simulator.biomes import Action, Biome, Hour
from reverie.models.pocket.simulator.simulator import (
    CELL_PX,
    Simulator,
    advance,
    initial_state,
    render,
    stack_states,
    tiles_in_view,
)
from reverie.models.pocket.simulator.terrain import Tile, tiles_at
from reverie.models.pocket.simulator.walker import (
    FACING_OF,
    STANCES,
    Facing,
    action_and_facing,
    stance_of,
)

SEEDS = np.arange(6) + 40
BIOMES = np.arange(6) % len(Biome)
HOURS = np.arange(6) % len(Hour)


def walked(*actions: Action) -> Simulator:
    simulator = Simulator(SEEDS, BIOMES, HOURS)
    for action in actions:
        simulator.step(np.full(len(SEEDS), action))
    return simulator


def test_the_same_seed_and_actions_give_the_same_pictures() -> None:
    moves = (Action.LEFT, Action.UP, Action.WAIT)
    assert np.array_equal(walked(*moves).render(), walked(*moves).render())


def test_many_worlds_together_look_like_each_alone() -> None:
    together = walked(Action.DOWN).render()
    for index in range(len(SEEDS)):
        alone = Simulator(SEEDS[[index]], BIOMES[[index]], HOURS[[index]])
        alone.step(np.array([Action.DOWN]))
        assert np.array_equal(alone.render()[0], together[index])


def test_a_move_scrolls_the_map_by_exactly_one_cell() -> None:
    # two steps, so that the water shows the same phase again
    before, after = walked().render(), walked(Action.RIGHT, Action.WAIT).render()
    above = slice(0, 40)  # above the walker
    assert np.array_equal(before[:, above, CELL_PX:], after[:, above, :-CELL_PX])
    after = walked(Action.UP, Action.WAIT).render()
    left = slice(0, 50)
    assert np.array_equal(before[:, :-CELL_PX, left], after[:, CELL_PX:, left])


def test_back_and_forth_returns_to_the_same_land() -> None:
    before = walked()
    after = walked(Action.RIGHT, Action.DOWN, Action.LEFT, Action.UP)
    assert np.array_equal(tiles_in_view(before.state), tiles_in_view(after.state))


def test_a_prompt_change_recolours_and_moves_nothing() -> None:
    simulator = walked(Action.LEFT)
    before, tiles = simulator.render(), tiles_in_view(simulator.state)
    simulator.change((BIOMES + 1) % len(Biome), (HOURS + 1) % len(Hour))
    assert np.array_equal(tiles_in_view(simulator.state), tiles)
    assert simulator.state.facing.tolist() == [Facing.LEFT] * len(SEEDS)
    assert not np.array_equal(simulator.render(), before)
    simulator.change(BIOMES, HOURS)
    assert np.array_equal(simulator.render(), before)


def test_waiting_moves_the_water_and_nothing_else() -> None:
    simulator = walked()
    before, after = simulator.render(), walked(Action.WAIT).render()
    changed = (before != after).any(axis=(0, 3))
    assert changed.any()
    assert np.array_equal(walked(Action.WAIT, Action.WAIT).render(), before)


def test_the_walker_turns_and_changes_legs_with_every_move() -> None:
    state = walked(Action.UP).state
    assert state.facing.tolist() == [Facing.UP] * len(SEEDS)
    assert state.stride.tolist() == [1] * len(SEEDS)
    still = advance(state, np.full(len(SEEDS), Action.WAIT))
    assert still.stride.tolist() == [1] * len(SEEDS)
    assert still.facing.tolist() == [Facing.UP] * len(SEEDS)


def test_every_kind_of_tile_occurs() -> None:
    seed = np.arange(20)[:, None, None]
    span = np.arange(40)
    kinds = tiles_at(seed, span[None, None, :], span[None, :, None])
    shares = np.bincount(kinds.ravel(), minlength=len(Tile)) / kinds.size
    assert (shares > 0.01).all()
    assert (shares < 0.5).all()


def test_stacked_states_render_in_order() -> None:
    first = initial_state(SEEDS, BIOMES, HOURS)
    second = advance(first, np.full(len(SEEDS), Action.RIGHT))
    both = render(stack_states([first, second]))
    assert np.array_equal(both[: len(SEEDS)], render(first))
    assert np.array_equal(both[len(SEEDS) :], render(second))


def test_a_stance_can_be_read_back() -> None:
    told = [(action, facing) for action in Action for facing in (None, *Facing)]
    stances = [stance_of(*pair) for pair in told]
    assert set(stances) == set(range(STANCES))
    for (action, facing), stance in zip(told, stances, strict=True):
        known = FACING_OF.get(action, facing)
        assert action_and_facing(stance) == (action, known)
