"""Room and cost."""

from dataclasses import replace

import pytest
from stub_model import StubFamily

from reverie.engine.admission import Admission
from reverie.engine.errors import AdmissionError
from reverie.engine.options import DriverOptions
from reverie.engine.scheduler import LoopOf
from reverie.models.contract.blocks import BlockPool
from reverie.models.contract.instance import LoadOptions, ModelInstance

FAMILY = StubFamily(frames=12, rate_hz=24.0)
LOOP = FAMILY.spec.loops[0]
OWNER = LoopOf("s", "world_model")
OPTIONS = DriverOptions(history_chunks=3)


def instance(sessions: int) -> ModelInstance:
    return FAMILY.load(LoadOptions(device="cpu", sessions=sessions, history_chunks=3))


def test_as_many_sessions_fit_as_the_pool_was_made_for() -> None:
    admission = Admission(instance(2), 9, OPTIONS)
    assert admission.slots([LOOP]) == 2
    admission.admit("a", [LOOP])
    admission.admit("b", [LOOP])
    with pytest.raises(AdmissionError, match="8 cache blocks are needed, 0 are left"):
        admission.admit("c", [LOOP])
    admission.leave("a")
    admission.leave("a")
    admission.admit("c", [LOOP])
    assert admission.admitted == 2


def test_no_more_are_admitted_than_the_operator_allows() -> None:
    admission = Admission(instance(4), 1, OPTIONS)
    assert admission.slots([LOOP]) == 1
    admission.admit("a", [LOOP])
    with pytest.raises(AdmissionError, match="all 1 slots"):
        admission.admit("b", [LOOP])


def test_a_loop_without_a_cache_is_limited_by_number_only() -> None:
    bare = replace(LOOP, window_blocks=0, chunk_blocks=0)
    admission = Admission(replace(instance(1), blocks=None), 3, OPTIONS)
    assert (admission.slots([bare]), admission.session_bytes([bare])) == (3, 0)
    admission.admit("a", [bare])


def test_a_session_takes_its_window_and_its_history() -> None:
    held = instance(1)
    assert held.blocks is not None
    assert Admission(held, 1, OPTIONS).session_bytes([LOOP]) == 8 * held.blocks.block_bytes


def test_a_pool_with_room_for_no_session_is_refused() -> None:
    small = replace(instance(1), blocks=BlockPool(7, (1,)))
    Admission(instance(1), 1, OPTIONS).require_room("world", [LOOP])
    with pytest.raises(AdmissionError, match="has 7 blocks, a session of program world needs 8"):
        Admission(small, 1, OPTIONS).require_room("world", [LOOP])
    with pytest.raises(AdmissionError, match="has 0 blocks"):
        Admission(replace(small, blocks=None), 1, OPTIONS).require_room("world", [LOOP])
