"""Interrupt, rewind, reset, snapshot and recovery."""

from dataclasses import replace

import pytest
from driving import UNITS, all_blocks_are_free, keys, prompt, stamps, worlds
from loop_rig import stub_rig
from stub_model import StubState, prompt_mark, stub_request

from reverie.engine.driver import DriverOptions
from reverie.engine.emissions import (
    ControlApplied,
    SnapshotOut,
)
from reverie.engine.errors import (
    ChunkNotKeptError,
    NoSnapshotError,
    SnapshotLimitError,
    UnknownSnapshotError,
    WeightsChangedError,
)
from reverie.engine.inputs import (
    ControlId,
    ParameterInput,
)
from reverie.models.contract.controls import Controls
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import Idle, LoopRequest, WorkPlan
from reverie.models.contract.spec import Lead


@pytest.mark.parametrize("units", range(2 * UNITS + 1))
def test_an_interrupt_continues_from_what_was_seen_wherever_it_comes(units: int) -> None:
    rig = stub_rig(seen_at_once=False)
    driver = rig.open(options=DriverOptions(lead=Lead(3)))
    rig.run_chunks("s1", 2)
    for _ in range(units):
        rig.step()
    out = len(rig.frames("s1"))
    position = driver.interrupt(0)
    assert (position.chunk, position.pts_us) == (0, out * 100_000)
    [after] = rig.run_chunks("s1", 1)
    assert (after.header.chunk, after.header.pts_us, after.header.discontinuity) == (
        out,
        position.pts_us,
        True,
    )
    assert stamps(rig)[-1].chunk == 1
    [then] = rig.run_chunks("s1", 1)
    assert not then.header.discontinuity


def test_an_interrupt_before_anything_was_seen_begins_again() -> None:
    rig = stub_rig(seen_at_once=False)
    driver = rig.open()
    rig.run_chunks("s1", 1)
    assert driver.interrupt(None).chunk == -1
    rig.run_chunks("s1", 1)
    assert worlds(rig) == [0, 0]


def test_an_interrupt_between_chunks_keeps_the_context_pass_that_was_done() -> None:
    rig = stub_rig(seen_at_once=False)
    driver = rig.open()
    rig.run_idle()
    driver.interrupt(0)
    rig.run_chunks("s1", 1)
    kinds = [unit.kind for unit in rig.units("s1")]
    assert kinds.count("context") == 1
    assert worlds(rig) == [0, 1]


def test_a_prompt_whose_frames_an_interrupt_drops_acts_in_the_frames_that_follow() -> None:
    rig = stub_rig(seen_at_once=False)
    driver = rig.open(options=DriverOptions(lead=Lead(2)))
    rig.run_chunks("s1", 1)
    driver.push([prompt("a sea"), ParameterInput(ControlId("b"), "brightness", 0.9)])
    rig.run_chunks("s1", 1)
    driver.interrupt(0)
    rig.run_chunks("s1", 1)
    assert stamps(rig)[-1].prompt == prompt_mark("a sea")
    assert len(rig.heard_of("s1", ControlApplied)) == 2, "a control is answered once"


def test_controls_of_a_chunk_that_an_interrupt_cuts_act_in_the_next() -> None:
    rig = stub_rig()
    driver = rig.open()
    rig.run_chunks("s1", 1)
    rig.step()
    driver.push([keys("+up", "-up"), prompt("a sea")])
    rig.step()
    rig.step()
    driver.interrupt(0)
    rig.run_chunks("s1", 1)
    last = stamps(rig)[-1]
    assert (last.acting, last.prompt) == ("up", prompt_mark("a sea"))
    assert [told.chunk for told in rig.heard_of("s1", ControlApplied)] == [1, 1]


def test_a_rewind_goes_back_to_a_kept_chunk_and_refuses_others() -> None:
    rig = stub_rig(history_chunks=4)
    driver = rig.open()
    first = rig.run_chunks("s1", 8)
    assert driver.rewind(4).chunk == 4
    again = rig.run_chunks("s1", 2)
    assert [chunk.header.chunk for chunk in again] == [8, 9]
    assert worlds(rig)[-2:] == [5, 6]
    assert (again[0].frames == first[5].frames).all()
    for gone in (0, 6, 7, 99):
        with pytest.raises(
            ChunkNotKeptError, match=f"chunk {gone} is not kept; those kept: 3, 4, 8, 9"
        ):
            driver.rewind(gone)
    driver.reset()
    with pytest.raises(ChunkNotKeptError, match="chunk 9 is not kept; no chunk was put out yet"):
        driver.rewind(9)


def test_held_keys_outlive_a_rewind() -> None:
    rig = stub_rig()
    driver = rig.open()
    rig.run_chunks("s1", 2)
    driver.push([keys("+up")])
    rig.run_chunks("s1", 2)
    driver.rewind(1)
    rig.run_chunks("s1", 1)
    assert stamps(rig)[-1].held == {"up"}


def test_a_reset_begins_again_under_the_prompt_now_in_effect() -> None:
    rig = stub_rig()
    driver = rig.open()
    rig.run_chunks("s1", 2)
    driver.push([prompt("a sea")])
    assert driver.reset().chunk == -1
    rig.run_chunks("s1", 2)
    assert [(stamp.chunk, stamp.prompt) for stamp in stamps(rig)[2:]] == [
        (0, prompt_mark("a sea")),
        (1, prompt_mark("a sea")),
    ]
    [receipt] = rig.heard_of("s1", ControlApplied)
    assert receipt.chunk == 2
    driver.reset(seed=9)
    rig.run_chunks("s1", 1)
    last = stamps(rig)[-1]
    assert (last.chunk, last.prompt, last.seed) == (0, prompt_mark("a sea"), 9)


def test_a_prompt_that_comes_after_a_reset_with_nothing_running_is_not_lost() -> None:
    rig = stub_rig()
    driver = rig.open()
    driver.reset()
    driver.push([prompt("a sea")])
    driver.reset()
    rig.run_chunks("s1", 1)
    assert stamps(rig)[0].prompt == prompt_mark("a sea")
    assert len(rig.heard_of("s1", ControlApplied)) == 1


def test_a_snapshot_is_exact_while_there_is_room_and_durable_when_there_is_none() -> None:
    for wait in (1, 12):
        rig = stub_rig(history_chunks=3)
        driver = rig.open()
        rig.run_chunks("s1", 6)
        assert driver.snapshot("here").chunk == 5
        following = rig.run_chunks("s1", wait)
        assert driver.restore("here").chunk == 5
        [after] = rig.run_chunks("s1", 1)
        assert (after.frames == following[0].frames).all()
        assert after.header.discontinuity
        driver.restore("here")
        rig.run_chunks("s1", 1)
        assert worlds(rig)[-1] == 6
        rig.close("s1")
        assert all_blocks_are_free(rig)


def test_a_snapshot_can_be_kept_by_the_driver_that_comes_after() -> None:
    lost = stub_rig()
    driver = lost.open()
    lost.run_chunks("s1", 3)
    driver.snapshot("here")
    durable = driver.kept("here")
    assert durable is not None
    assert driver.kept("there") is None
    rig = stub_rig()
    driver = rig.open(chunks=9, pts_us=900_000)
    driver.keep("here", 2, durable)
    assert driver.kept("here") is durable
    assert driver.restore("here").chunk == 2
    rig.run_chunks("s1", 1)
    assert worlds(rig) == [3]
    rig.close("s1")
    assert all_blocks_are_free(rig)


def test_snapshots_that_cannot_be_are_refused() -> None:
    rig = stub_rig()
    driver = rig.open(options=DriverOptions(history_chunks=4, snapshots=1))
    with pytest.raises(NoSnapshotError):
        driver.snapshot("early")
    rig.run_chunks("s1", 1)
    driver.snapshot("one")
    driver.snapshot("one")
    with pytest.raises(SnapshotLimitError):
        driver.snapshot("two")
    with pytest.raises(UnknownSnapshotError):
        driver.restore("two")
    rig.run_chunks("s1", 1)
    assert worlds(rig) == [0, 1]


def test_recovery_snapshots_come_after_the_first_chunk_and_then_at_intervals() -> None:
    rig = stub_rig()
    driver = rig.open(options=DriverOptions(snapshot_every_us=300_000))
    rig.run_chunks("s1", 8)
    assert [out.chunk for out in rig.heard_of("s1", SnapshotOut)] == [0, 3, 6]
    driver.rewind(5)
    rig.run_chunks("s1", 1)
    assert rig.heard_of("s1", SnapshotOut)[-1].chunk == 8, "an old one would undo the rewind"


def test_a_lost_session_continues_from_its_snapshot_with_numbers_and_times() -> None:
    lost = stub_rig()
    lost.open(options=DriverOptions(snapshot_every_us=1)).push([prompt("a sea")])
    before = lost.run_chunks("s1", 6)
    snapshot = lost.heard_of("s1", SnapshotOut)[3]
    rig = stub_rig()
    driver = rig.open(
        stub_request(prompt="a desert"), durable=snapshot.durable, chunks=6, pts_us=600_000
    )
    assert (driver.position.chunk, driver.position.pts_us) == (5, 600_000)
    after = rig.run_chunks("s1", 2)
    assert [chunk.header.chunk for chunk in after] == [6, 7]
    assert [chunk.header.discontinuity for chunk in after] == [True, False]
    assert [stamp.prompt for stamp in stamps(rig)] == [prompt_mark("a desert")] * 2
    assert worlds(rig) == [4, 5]
    assert len(before) == 6


def test_a_reset_has_the_kernel_start_under_what_is_in_effect() -> None:
    rig = stub_rig()
    asked = []
    honest = rig.kernel.init_state

    def init_state(request: LoopRequest, instance: ModelInstance) -> StubState:
        asked.append(request)
        state: StubState = honest(request, instance)
        return state

    rig.kernel.init_state = init_state  # type: ignore[method-assign]
    driver = rig.open()
    driver.push([prompt("a sea"), ParameterInput(ControlId("b"), "brightness", 0.9)])
    rig.run_chunks("s1", 1)
    driver.reset(seed=5)
    driver.reset()
    assert [(request.seed, request.prompt) for request in asked] == [
        (7, "a frozen lake"),
        (5, "a sea"),
        (5, "a sea"),
    ]
    assert asked[-1].parameters["brightness"] == 0.9


def test_the_number_of_a_chunk_that_was_cut_after_its_first_frames_is_not_used_again() -> None:
    rig = stub_rig()
    driver = rig.open()
    rig.run_chunks("s1", 1)
    honest = rig.kernel.plan_step

    def in_two_parts(state: StubState, controls: Controls) -> WorkPlan | Idle:
        plan = honest(state, controls)
        return replace(plan, shows=False) if isinstance(plan, WorkPlan) else plan

    rig.kernel.plan_step = in_two_parts  # type: ignore[method-assign]
    [cut] = rig.run_chunks("s1", 1)
    driver.interrupt(0)
    rig.kernel.plan_step = honest  # type: ignore[method-assign]
    [after] = rig.run_chunks("s1", 1)
    assert (cut.header.chunk, after.header.chunk) == (1, 2)
    assert (after.header.pts_us, after.header.discontinuity) == (200_000, True)


def test_a_lost_session_without_a_snapshot_restarts_its_world_and_continues_counting() -> None:
    rig = stub_rig()
    rig.open(chunks=6, pts_us=600_000)
    after = rig.run_chunks("s1", 2)
    assert [(chunk.header.chunk, chunk.header.pts_us) for chunk in after] == [
        (6, 600_000),
        (7, 700_000),
    ]
    assert [chunk.header.discontinuity for chunk in after] == [True, False]
    assert worlds(rig) == [0, 1]


def test_a_reset_that_fails_changes_nothing() -> None:
    rig = stub_rig()
    driver = rig.open()
    rig.run_chunks("s1", 2)
    honest = rig.kernel.init_state

    def init_state(request: LoopRequest, instance: ModelInstance) -> StubState:
        raise MemoryError("no room to begin")

    rig.kernel.init_state = init_state  # type: ignore[method-assign]
    with pytest.raises(MemoryError):
        driver.reset(seed=9)
    rig.kernel.init_state = honest  # type: ignore[method-assign]
    rig.run_chunks("s1", 1)
    assert (worlds(rig), stamps(rig)[-1].seed) == ([0, 1, 2], 7)


def test_nothing_continues_from_a_state_of_other_weights() -> None:
    rig = stub_rig()
    driver = rig.open()
    rig.run_chunks("s1", 1)
    driver.snapshot("here")
    durable = driver.kept("here")
    assert durable is not None
    older = replace(durable, weights_version="older")
    driver.keep("there", 0, older)
    with pytest.raises(WeightsChangedError) as caught:
        driver.restore("there")
    assert "older" in str(caught.value)
    assert driver.position.chunk == 0
    with pytest.raises(WeightsChangedError):
        rig.open(stub_request("s2"), durable=older, chunks=1)
