import os
from pathlib import Path

import pytest

from reverie.gpu_pool.wire.shared_memory import SharedMemory


def names() -> set[str]:
    return {entry.name for entry in Path("/dev/shm").iterdir()}


def test_two_owners_see_the_same_bytes() -> None:
    memory = SharedMemory.create()
    memory.resize(100)
    other = memory.duplicate()
    memory.map()[7] = 42
    memory.close()
    assert other.map()[7] == 42


def test_a_mapping_outlives_its_descriptor() -> None:
    memory = SharedMemory.create()
    memory.resize(100)
    view = memory.map()
    memory.close()
    memory.close()
    view[0] = 1
    assert view[0] == 1


def test_it_has_no_name_that_could_be_left_behind() -> None:
    before = names()
    memory = SharedMemory.create()
    memory.resize(1 << 20)
    assert names() == before
    memory.close()


def test_its_memory_is_reserved_at_once_and_refused_when_it_is_not_there() -> None:
    memory = SharedMemory.create()
    memory.resize(1 << 20)
    assert os.fstat(memory.fileno()).st_blocks * 512 >= 1 << 20
    with pytest.raises(OSError, match="too much to share"):
        memory.resize(1 << 62)
    memory.close()
