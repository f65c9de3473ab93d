"""Which blocks a session holds, and for how long."""

from dataclasses import dataclass

import pytest

from reverie.engine.checkpoints import BlockHolder, Checkpoint
from reverie.engine.emissions import FaultCode
from reverie.engine.errors import BadStepError
from reverie.engine.states import LoopStates
from reverie.models.contract.blocks import BlockId, BlockPool
from reverie.models.contract.errors import OutOfBlocksError
from reverie.models.contract.loop import Durable

WINDOW = 2
DURABLE = Durable("loop", "w1", {}, "{}")


@dataclass(frozen=True, slots=True)
class Window:
    """A state that is nothing but its blocks."""

    blocks: tuple[BlockId, ...] = ()


def checkpoint(*blocks: int, chunk: int = -1) -> Checkpoint[Window]:
    return Checkpoint(Window(tuple(BlockId(block) for block in blocks)), chunk, "", {})


def standing(pool: BlockPool, history: int = 3, snapshots: int = 2) -> LoopStates[Window]:
    return LoopStates(pool, checkpoint(), history, snapshots, budget=WINDOW + history)


def run_chunk(states: LoopStates[Window], chunk: int) -> None:
    """Show a chunk, then write one block, the way a context pass does."""
    states.show(chunk, 100 * (chunk + 1))
    blocks = states.reserve(1)
    window = (*states.now.state.blocks, *blocks)[-WINDOW:]
    states.adopt(Checkpoint(Window(window), chunk, "", {}), blocks)
    states.settle()


def test_a_long_run_holds_no_more_than_its_budget_and_gives_all_back() -> None:
    pool = BlockPool(20, (1,))
    states = standing(pool)
    for chunk in range(50):
        run_chunk(states, chunk)
        assert pool.count - pool.free <= WINDOW + 3
    assert [kept.chunk for kept in states.history] == [47, 48, 49]
    states.clear()
    assert pool.free == pool.count


def test_a_rollback_frees_what_the_unit_had_reserved() -> None:
    pool = BlockPool(8, (1,))
    states = standing(pool)
    run_chunk(states, 0)
    free = pool.free
    reserved = states.reserve(2)
    states.roll_back(reserved)
    assert pool.free == free
    assert states.now is states.safe


def test_a_rollback_of_several_units_returns_to_the_last_closed_one() -> None:
    pool = BlockPool(8, (1,))
    states = standing(pool)
    run_chunk(states, 0)
    safe, free = states.safe, pool.free
    for _ in range(2):
        blocks = states.reserve(1)
        states.adopt(Checkpoint(Window((*states.now.state.blocks, *blocks)), 0, "", {}), blocks)
    assert pool.free == free - 2
    states.roll_back(())
    assert states.now is safe
    assert pool.free == free


def test_blocks_that_the_next_state_does_not_refer_to_are_free() -> None:
    pool = BlockPool(8, (1,))
    states = standing(pool)
    states.adopt(checkpoint(), states.reserve(3))
    assert pool.free == 8


def test_going_back_shares_blocks_and_drops_what_came_after() -> None:
    pool = BlockPool(20, (1,))
    states = standing(pool)
    for chunk in range(5):
        run_chunk(states, chunk)
    target = states.history.find(3)
    assert target is not None
    contents = target.state.blocks
    states.go_to(target, target)
    assert states.now.state.blocks == contents
    assert [kept.chunk for kept in states.history] == [2, 3]
    states.clear()
    assert pool.free == pool.count


def test_going_to_a_state_outside_the_history_restarts_the_history() -> None:
    pool = BlockPool(20, (1,))
    states = standing(pool)
    for chunk in range(5):
        run_chunk(states, chunk)
    first = checkpoint()
    states.go_to(first, first)
    assert [kept.chunk for kept in states.history] == [-1]
    assert pool.free == pool.count


def test_history_gives_way_before_a_unit_runs_out_of_blocks() -> None:
    pool = BlockPool(5, (1,))
    states = standing(pool)
    for chunk in range(5):
        run_chunk(states, chunk)
    blocks = states.reserve(WINDOW)
    assert len(blocks) == WINDOW
    assert len(states.history) < 3
    states.roll_back(blocks)


def test_the_newest_checkpoint_is_never_dropped() -> None:
    pool = BlockPool(5, (1,))
    states = standing(pool)
    run_chunk(states, 0)
    with pytest.raises(BadStepError, match="7 cache blocks, admitted for 5"):
        states.reserve(6)
    assert states.history.newest.chunk == 0


def test_what_the_pool_has_left_is_for_other_sessions() -> None:
    pool = BlockPool(20, (1,))
    states = standing(pool)
    free = pool.free
    with pytest.raises(BadStepError) as refused:
        states.reserve(WINDOW + 4)
    assert refused.value.code is FaultCode.TOO_MANY_BLOCKS
    assert pool.free == free


def test_a_state_counts_with_what_the_session_cannot_let_go_of() -> None:
    pool = BlockPool(20, (1,))
    states = standing(pool)
    for chunk in range(5):
        run_chunk(states, chunk)
    kept = {*states.safe.state.blocks, *states.history.newest.state.blocks}
    others = [BlockId(block) for block in range(20) if block not in kept]
    room = WINDOW + 3 - len(kept)
    states.require_room((*kept, *others[:room]))
    with pytest.raises(BadStepError, match="6 cache blocks, admitted for 5"):
        states.require_room(others[: room + 1])


def test_an_exact_snapshot_gives_up_its_blocks_before_history_does() -> None:
    pool = BlockPool(20, (1,))
    states = standing(pool)
    for chunk in range(4):
        run_chunk(states, chunk)
    states.snapshots.put("here", states.history.newest, DURABLE)
    for chunk in range(4, 12):
        run_chunk(states, chunk)
        assert pool.count - pool.free <= WINDOW + 3
    kept = states.snapshots.get("here")
    assert kept is not None
    assert (kept.chunk, kept.checkpoint, kept.durable) == (3, None, DURABLE)
    assert len(states.history) == 3
    states.clear()
    assert pool.free == pool.count


def test_a_snapshot_of_the_same_name_takes_the_place_of_the_older_one() -> None:
    pool = BlockPool(20, (1,))
    states = standing(pool, snapshots=1)
    run_chunk(states, 0)
    states.snapshots.put("a", states.history.newest, DURABLE)
    run_chunk(states, 1)
    assert states.snapshots.has_room("a")
    assert not states.snapshots.has_room("b")
    states.snapshots.put("a", states.history.newest, DURABLE)
    kept = states.snapshots.get("a")
    assert kept is not None
    assert kept.chunk == 1
    states.clear()
    assert pool.free == pool.count


def test_the_newest_checkpoint_not_after_a_chunk_is_found_across_a_rewind() -> None:
    pool = BlockPool(20, (1,))
    states = standing(pool)
    for chunk in (3, 7, 8):
        run_chunk(states, chunk)
    assert states.history.at_or_before(6).chunk == 3
    assert states.history.at_or_before(100).chunk == 8
    assert states.history.at_or_before(0).chunk == 3
    assert states.history.find(6) is None


def test_a_loop_without_a_cache_needs_no_pool() -> None:
    states: LoopStates[Window] = LoopStates(None, checkpoint(), 3, 1, budget=0)
    states.show(0, 100)
    assert states.reserve(0) == ()
    states.clear()
    with pytest.raises(OutOfBlocksError):
        BlockHolder(None).reserve(1)
