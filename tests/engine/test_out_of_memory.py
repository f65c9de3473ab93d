"""Memory that runs out in a step: the batch is made smaller before any session fails."""

import pytest
from failing_device import ROOM, Cramped, CrampedKernel
from loop_rig import Rig
from stub_model import Fault, stub_request

from reverie.engine.emissions import FaultCode, StepFailed
from reverie.engine.scheduler import GROWS_AFTER, BatchLimit
from reverie.models.contract.instance import LoadOptions

SESSIONS = ("a", "b", "c", "d", "e")


def cramped_rig() -> tuple[Rig, CrampedKernel]:
    rig = Rig(Cramped(frames=2, rate_hz=20.0), LoadOptions(device="cpu", sessions=len(SESSIONS)))
    assert isinstance(rig.kernel, CrampedKernel)
    return rig, rig.kernel


def test_a_batch_that_has_no_room_runs_in_parts_and_no_session_fails() -> None:
    rig, kernel = cramped_rig()
    for session in SESSIONS:
        rig.open(stub_request(session))
    rig.step()
    assert kernel.tried == [5, 2, 3, 1, 2]
    assert all(driver.position is not None for driver in rig.drivers.values())
    rig.run(lambda: all(len(rig.frames(session)) >= 3 for session in SESSIONS))
    assert not any(rig.heard_of(session, StepFailed) for session in SESSIONS)


def test_batches_after_it_are_no_larger_than_what_had_room() -> None:
    rig, kernel = cramped_rig()
    for session in SESSIONS:
        rig.open(stub_request(session))
    rig.step()
    kernel.tried.clear()
    for _ in range(40):
        rig.step()
    assert max(kernel.tried) <= ROOM


def test_a_unit_that_has_no_room_alone_is_tried_again_and_then_said_to_have_none() -> None:
    rig, kernel = cramped_rig()
    kernel._failed = set()
    driver = rig.open(stub_request("a", fault=Fault.RAISE, fault_chunk=1, fault_always=1))
    rig.open(stub_request("b"))
    rig.run(lambda: driver.ended)
    failed = rig.heard_of("a", StepFailed)
    assert [(each.code, each.fatal) for each in failed] == [
        (FaultCode.OUT_OF_MEMORY, False),
        (FaultCode.OUT_OF_MEMORY, True),
    ]
    assert "out of memory on cpu: 16.0 PiB were requested, " in failed[0].message
    rig.run_chunks("b", 3)
    assert not rig.heard_of("b", StepFailed)


def test_a_unit_that_finds_room_the_second_time_has_not_failed() -> None:
    rig, kernel = cramped_rig()
    rig.open(stub_request("a", fault=Fault.RAISE, fault_chunk=1))
    rig.run_chunks("a", 3)
    assert kernel._failed == {("a", 1)}
    assert not rig.heard_of("a", StepFailed)


def test_a_larger_batch_is_tried_again_after_a_while(caplog: pytest.LogCaptureFixture) -> None:
    limit = BatchLimit(8)
    limit.ran_out(8)
    limit.ran_out(4)
    assert limit.size == 2
    assert "memory ran out for 4 units at once; 2 are run now" in caplog.text
    for _ in range(GROWS_AFTER):
        limit.ran(1)  # says nothing of two
    assert limit.size == 2
    for _ in range(GROWS_AFTER):
        limit.ran(2)
    assert limit.size == 4
    for _ in range(5 * GROWS_AFTER):
        limit.ran(limit.size)
    assert limit.size == 8
