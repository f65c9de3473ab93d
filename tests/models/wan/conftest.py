"""Rigs on one loaded model: each test gets its own, and has to leave no block behind."""

from collections.abc import Iterator

import pytest
from loop_rig import Rig
from wan_rig import Again


@pytest.fixture
def again(loaded: Rig) -> Iterator[Again]:
    """Return a maker of rigs without sessions; `loaded` is the module's own."""
    made: list[Rig] = []

    def one() -> Rig:
        made.append(loaded.again())
        return made[-1]

    yield one
    for rig in made:
        for session in list(rig.drivers):
            rig.close(session)
    pool = loaded.instance.blocks
    assert pool is not None
    assert pool.free == pool.count, "blocks were lost"
