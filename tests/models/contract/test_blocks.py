"""The cache pool: references to a block, and when it is free."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from reverie.models.contract.blocks import BlockId, BlockPool
from reverie.models.contract.errors import OutOfBlocksError


def test_blocks_are_taken_or_none_is() -> None:
    pool = BlockPool(3, (2,))
    assert len(pool.reserve(2)) == 2
    with pytest.raises(OutOfBlocksError, match="2 cache blocks were requested, 1 are free"):
        pool.reserve(2)
    assert pool.free == 1
    assert pool.reserve(0) == ()


def test_a_block_is_free_when_the_last_reference_goes() -> None:
    pool = BlockPool(2, (2,))
    blocks = pool.reserve(1)
    pool.retain(blocks)
    pool.release(blocks)
    assert pool.free == 1
    pool.release(blocks)
    assert pool.free == 2


def test_releasing_or_retaining_a_free_block_is_a_fault_of_the_caller() -> None:
    pool = BlockPool(2, (2,))
    [block] = pool.reserve(1)
    pool.release([block])
    with pytest.raises(AssertionError, match="is free"):
        pool.release([block])
    with pytest.raises(AssertionError, match="is free"):
        pool.retain([block])


def test_what_is_written_through_a_view_is_gathered_as_a_copy() -> None:
    pool = BlockPool(4, (2, 3))
    first, second = pool.reserve(2)
    pool.view(first).fill_(1.0)
    pool.view(second).fill_(2.0)
    gathered = pool.gather((second, first, second))
    assert gathered.shape == (3, 2, 3)
    assert gathered[:, 0, 0].tolist() == [2.0, 1.0, 2.0]
    pool.view(first).fill_(9.0)
    assert gathered[1, 0, 0] == 1.0
    assert pool.gather(()).shape == (0, 2, 3)


def test_it_says_how_large_a_block_is() -> None:
    assert BlockPool(2, (4, 8), torch.bfloat16).block_bytes == 64
    assert BlockPool(0, (4, 8)).block_bytes == 0


@given(st.lists(st.tuples(st.sampled_from(["reserve", "retain", "release"]), st.integers(0, 4))))
def test_references_add_up_in_any_order(actions: list[tuple[str, int]]) -> None:
    pool = BlockPool(6, (1,))
    held: list[tuple[BlockId, ...]] = []
    for action, number in actions:
        if action == "reserve" and number <= pool.free:
            held.append(pool.reserve(number))
        elif action == "retain" and held:
            pool.retain(held[number % len(held)])
            held.append(held[number % len(held)])
        elif action == "release" and held:
            pool.release(held.pop(number % len(held)))
        in_use = {block for blocks in held for block in blocks}
        assert pool.count - pool.free == len(in_use)
