"""Steps that fail: rolled back, run again, and the end of the loop at the second time."""

from dataclasses import replace

import odd_models
import pytest
from driving import UNITS, all_blocks_are_free, keys, prompt, stamps, worlds
from faulty_kernel import FaultyKernel, KernelFault
from loop_rig import Rig, stub_rig
from stub_model import Fault, StubState, prompt_mark, read_stamp, stub_request

from reverie.engine.driver import DriverOptions
from reverie.engine.emissions import (
    ControlApplied,
    ControlSuperseded,
    FaultCode,
    SnapshotOut,
    StepFailed,
)
from reverie.engine.errors import (
    LoopEndedError,
)
from reverie.engine.inputs import (
    ControlId,
)
from reverie.models.contract.controls import Controls
from reverie.models.contract.instance import LoadOptions
from reverie.models.contract.loop import Idle, WorkPlan


@pytest.mark.parametrize(
    ("fault", "unit", "code"),
    [(Fault.RAISE, unit, FaultCode.STEP_RAISED) for unit in range(UNITS)]
    + [(Fault.NAN, unit, FaultCode.NON_FINITE) for unit in range(UNITS - 1)],
)
def test_a_step_that_fails_once_is_run_again_with_the_same_controls(
    fault: Fault, unit: int, code: FaultCode
) -> None:
    rig = stub_rig()
    driver = rig.open(stub_request(fault=fault, fault_chunk=2, fault_unit=unit))
    rig.run_chunks("s1", 2)
    driver.push([prompt("a sea"), keys("+up", "-up")])
    rig.run_chunks("s1", 3)
    [failed] = rig.heard_of("s1", StepFailed)
    assert (failed.code, failed.fatal) == (code, False)
    assert worlds(rig) == [0, 1, 2, 3, 4]
    assert (stamps(rig)[2].prompt, stamps(rig)[2].acting) == (prompt_mark("a sea"), "up")
    assert [told.control for told in rig.heard_of("s1", ControlApplied)] == ["p", "k"]
    rig.close("s1")
    assert all_blocks_are_free(rig)


@pytest.mark.parametrize("fault", [Fault.RAISE, Fault.NAN, Fault.BAD_SHAPE])
def test_a_step_that_fails_twice_ends_the_loop_and_commits_nothing(fault: Fault) -> None:
    unit = 2 if fault is Fault.BAD_SHAPE else 1
    request = stub_request(fault=fault, fault_chunk=4, fault_unit=unit, fault_always=1)
    rig = stub_rig()
    driver = rig.open(request)
    rig.run(lambda: driver.ended)
    driver_says = rig.heard_of("s1", StepFailed)
    assert [(failed.chunk, failed.fatal) for failed in driver_says] == [(4, False), (4, True)]
    assert worlds(rig) == [0, 1, 2, 3]
    assert driver.position.chunk == 3
    assert rig.step() == []
    with pytest.raises(LoopEndedError):
        driver.push([prompt("a sea")])
    rig.close("s1")
    assert all_blocks_are_free(rig)


def test_bad_latents_never_reach_the_cache() -> None:
    healthy = stub_rig()
    healthy.open(stub_request())
    expected = healthy.run_chunks("s1", 10)
    rig = stub_rig()
    rig.open(stub_request(fault=Fault.NAN, fault_chunk=4))
    chunks = rig.run_chunks("s1", 10)
    pairs = zip(chunks, expected, strict=True)
    assert all((one.frames == other.frames).all() for one, other in pairs)


def test_controls_that_wait_when_the_loop_ends_are_answered() -> None:
    rig = stub_rig()
    driver = rig.open(stub_request(fault=Fault.RAISE, fault_chunk=1, fault_always=1))
    rig.run_chunks("s1", 1)
    driver.push([prompt("a sea")])
    rig.run(lambda: driver.ended)
    assert rig.heard_of("s1", ControlSuperseded) == [ControlSuperseded("s1", ControlId("p"), None)]


def test_a_kernel_that_cannot_plan_ends_its_session_at_once() -> None:
    rig = stub_rig()
    driver = rig.open(stub_request("s1"))
    neighbour = rig.open(stub_request("s2"))
    honest = rig.kernel.plan_step

    def plan_step(state: object, controls: object) -> object:
        if getattr(state, "session", "") == "s1":
            raise ZeroDivisionError("cannot plan")
        return honest(state, controls)  # type: ignore[arg-type]

    rig.kernel.plan_step = plan_step  # type: ignore[method-assign, assignment]
    rig.run_chunks("s2", 2)
    [failed] = rig.heard_of("s1", StepFailed)
    assert (failed.fatal, driver.ended, neighbour.ended) == (True, True, False)


def test_frames_stay_as_they_were_put_out_when_the_kernel_reuses_its_buffer() -> None:
    rig = stub_rig()
    rig.open(stub_request(fault=Fault.REUSE_BUFFER))
    chunks = rig.run_chunks("s1", 30)
    read = [
        (read_stamp(frame).chunk, read_stamp(frame).frame) for c in chunks for frame in c.frames
    ]
    assert read == [(chunk, frame) for chunk in range(30) for frame in range(2)]


def test_failures_in_different_chunks_do_not_add_up() -> None:
    rig = stub_rig()
    rig.kernel = kernel = FaultyKernel(rig.kernel)
    driver = rig.open()
    for _ in range(3):
        kernel.spoil(KernelFault.RAISES)
        rig.run_chunks("s1", 1)
    assert not driver.ended
    assert len(rig.heard_of("s1", StepFailed)) == 3


def test_after_an_interrupt_a_failure_is_the_first_again() -> None:
    rig = stub_rig()
    rig.kernel = kernel = FaultyKernel(rig.kernel)
    driver = rig.open()
    rig.run_chunks("s1", 1)
    rig.step()
    for _ in range(2):
        kernel.spoil(KernelFault.RAISES)
        rig.step()
        driver.interrupt(0)
    assert not driver.ended


def test_an_output_before_its_chunk_is_committed_is_refused() -> None:
    rig = stub_rig()
    driver = rig.open()
    honest = rig.kernel.plan_step

    def never_committing(state: StubState, controls: Controls) -> WorkPlan | Idle:
        plan = honest(state, controls)
        assert isinstance(plan, WorkPlan)
        return replace(plan, commits=False, shows=False)

    rig.kernel.plan_step = never_committing  # type: ignore[method-assign]
    rig.run(lambda: driver.ended)
    assert {failed.code for failed in rig.heard_of("s1", StepFailed)} == {FaultCode.BAD_SHAPE}
    assert rig.frames("s1") == []


def test_a_state_that_cannot_be_saved_costs_only_its_snapshot() -> None:
    rig = stub_rig()
    rig.open(options=DriverOptions(snapshot_every_us=1))

    def durable(state: StubState) -> None:
        raise OSError("cannot be saved")

    rig.kernel.durable = durable  # type: ignore[method-assign]
    rig.run_chunks("s1", 3)
    assert worlds(rig) == [0, 1, 2]
    assert rig.heard_of("s1", SnapshotOut, StepFailed) == []


def test_a_session_that_drops_no_block_fails_alone_and_its_neighbour_has_its_room() -> None:
    rig = Rig(odd_models.HoardingFamily(frames=2), LoadOptions(sessions=2, history_chunks=2))
    offender, neighbour = rig.open(stub_request("bad")), rig.open(stub_request("good"))
    budget = rig.kernel.spec.blocks_a_session(2)
    rig.run(lambda: offender.ended)
    rig.run_chunks("good", 30)
    failed = rig.heard_of("bad", StepFailed)
    assert [(one.code, one.fatal) for one in failed] == [
        (FaultCode.TOO_MANY_BLOCKS, False),
        (FaultCode.TOO_MANY_BLOCKS, True),
    ]
    told = f"the session would hold {budget + 1} cache blocks, admitted for {budget}"
    assert {one.message for one in failed} == {told}
    assert worlds(rig, "bad") == list(range(budget + 1))
    assert not neighbour.ended
    assert rig.heard_of("good", StepFailed) == []
    rig.close("bad")
    rig.close("good")
    assert all_blocks_are_free(rig)


def test_a_unit_that_asks_for_the_room_of_others_fails_alone() -> None:
    rig = stub_rig()
    driver = rig.open()
    neighbour = rig.open(stub_request("s2"))
    honest = rig.kernel.plan_step

    def greedy(state: StubState, controls: Controls) -> WorkPlan | Idle:
        plan = honest(state, controls)
        asks = state.session == "s1" and state.kind == "context"
        return replace(plan, writes=20) if asks and isinstance(plan, WorkPlan) else plan

    rig.kernel.plan_step = greedy  # type: ignore[method-assign]
    rig.run(lambda: driver.ended)
    codes = {failed.code for failed in rig.heard_of("s1", StepFailed)}
    assert codes == {FaultCode.TOO_MANY_BLOCKS}
    rig.run_chunks("s2", 3)
    assert not neighbour.ended
    assert rig.heard_of("s2", StepFailed) == []


def test_a_chunk_that_ends_without_a_frame_fails_its_session_alone() -> None:
    rig = Rig(odd_models.FramelessFamily(frames=2))
    offender, neighbour = rig.open(stub_request("bad")), rig.open(stub_request("good"))
    rig.run(lambda: offender.ended)
    rig.run_chunks("good", 3)
    failed = rig.heard_of("bad", StepFailed)
    assert [(one.code, one.chunk, one.fatal) for one in failed] == [
        (FaultCode.BAD_SHAPE, 1, False),
        (FaultCode.BAD_SHAPE, 1, True),
    ]
    assert worlds(rig, "bad") == [0]
    assert not neighbour.ended


def test_a_chunk_may_end_with_a_unit_that_shows_nothing_new() -> None:
    rig = stub_rig()
    driver = rig.open()
    honest = rig.kernel.plan_step

    def showing_late(state: StubState, controls: Controls) -> WorkPlan | Idle:
        plan = honest(state, controls)
        assert isinstance(plan, WorkPlan)
        return replace(plan, shows=state.kind == "context")

    rig.kernel.plan_step = showing_late  # type: ignore[method-assign]
    rig.run_chunks("s1", 4)
    assert not driver.ended
    assert rig.heard_of("s1", StepFailed) == []
