"""Several sessions in one batch: a fault is its own session's, pixels depend on the seed alone."""

from pathlib import Path

import pytest
from loop_rig import Rig, stub_rig
from stub_model import LOG_VARIABLE, Fault, read_log, read_stamp, session_mark, stub_request

from reverie.engine.emissions import ControlApplied, FaultCode, FramesOut, StepFailed
from reverie.engine.inputs import ControlId, PromptInput
from reverie.models.contract.errors import OutOfBlocksError


def pixels(frames: list[FramesOut]) -> list[bytes]:
    return [chunk.frames.tobytes() for chunk in frames]


def alone(chunks: int, session: str = "s1", seed: int = 7) -> list[bytes]:
    rig = stub_rig()
    rig.open(stub_request(session, seed=seed))
    return pixels(rig.run_chunks(session, chunks))


def test_sessions_run_together_when_their_units_are_alike() -> None:
    rig = stub_rig()
    for name in ("a", "b", "c"):
        rig.open(stub_request(name))
    assert sorted(rig.step()) == ["a", "b", "c"]


def test_a_step_that_fails_twice_is_traced_in_the_log_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = stub_rig()
    driver = rig.open(stub_request(fault=Fault.RAISE, fault_chunk=1, fault_unit=1, fault_always=1))
    rig.run(lambda: driver.ended)
    assert len([record for record in caplog.records if record.exc_info]) == 1
    assert "failed again, so it ends: RuntimeError: the stub was told to fail" in caplog.text


def test_no_frame_carries_a_foreign_stamp() -> None:
    rig = stub_rig(max_batch=2)
    for name in ("red", "blue", "green"):
        rig.open(stub_request(name, prompt=name))
    rig.run(lambda: all(len(rig.frames(name)) >= 8 for name in ("red", "blue", "green")))
    for name in ("red", "blue", "green"):
        for chunk in rig.frames(name):
            for frame in chunk.frames:
                assert read_stamp(frame).session == session_mark(name)


@pytest.mark.parametrize("max_batch", [1, 2, 8])
def test_a_seed_gives_the_same_pixels_whatever_else_runs(max_batch: int) -> None:
    rig = stub_rig(max_batch=max_batch)
    rig.open(stub_request("s1"))
    rig.run_chunks("s1", 2)
    rig.open(stub_request("n1", seed=1))
    rig.open(stub_request("n2", seed=2))
    rig.run_chunks("s1", 2)
    rig.close("n1")
    rig.run_chunks("s1", 2)
    rig.open(stub_request("n3", seed=3))
    rig.drivers["s1"].pause()
    for _ in range(7):
        rig.step()
    rig.drivers["s1"].resume()
    rig.run_chunks("s1", 2)
    assert pixels(rig.frames("s1")) == alone(8)


def test_only_the_session_at_fault_fails_in_a_batch() -> None:
    rig = stub_rig()
    rig.open(stub_request("bad", fault=Fault.RAISE, fault_chunk=2, fault_always=1))
    for name in ("s1", "s2"):
        rig.open(stub_request(name))
    rig.run(lambda: rig.drivers["bad"].ended)
    rig.run(lambda: all(len(rig.frames(name)) >= 6 for name in ("s1", "s2")))
    for name in ("s1", "s2"):
        assert rig.heard_of(name, StepFailed) == []
        assert pixels(rig.frames(name))[:6] == alone(6, name)
    assert [failed.fatal for failed in rig.heard_of("bad", StepFailed)] == [False, True]
    assert len(rig.frames("bad")) == 2


def test_only_the_session_with_a_bad_result_is_rolled_back() -> None:
    rig = stub_rig()
    rig.open(stub_request("bad", fault=Fault.NAN, fault_chunk=1))
    rig.open(stub_request("s1"))
    rig.run(lambda: min(len(rig.frames("bad")), len(rig.frames("s1"))) >= 4)
    [failed] = rig.heard_of("bad", StepFailed)
    assert (failed.code, failed.chunk, failed.fatal) == (FaultCode.NON_FINITE, 1, False)
    assert rig.heard_of("s1", StepFailed) == []
    assert pixels(rig.frames("s1"))[:4] == alone(4)
    assert pixels(rig.frames("bad"))[:4] == alone(4, "bad")


def abort(rig: Rig, when: str) -> None:
    driver = rig.drivers["a"]
    if when == "mid-chunk":
        rig.run_chunks("a", 1)
        rig.step()
        rig.step()
    if when == "after it ended":
        rig.run_chunks("a", 3)
    driver.close()
    if when == "twice":
        driver.close()
    rig.close("a")


@pytest.mark.parametrize("when", ["queued", "mid-chunk", "twice", "after it ended"])
def test_an_aborted_session_changes_nothing_for_the_next(when: str) -> None:
    rig = stub_rig(max_batch=1)
    rig.open(stub_request("a"))
    abort(rig, when)
    rig.open(stub_request("s1"))
    assert pixels(rig.run_chunks("s1", 5)) == alone(5)
    rig.close("s1")
    assert rig.instance.blocks is not None
    assert rig.instance.blocks.free == rig.instance.blocks.count


def test_a_session_that_was_closed_never_runs_another_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "steps"
    monkeypatch.setenv(LOG_VARIABLE, str(log))
    rig = stub_rig(sessions=1)
    for index in range(20):
        name = f"s{index}"
        rig.open(stub_request(name))
        rig.step()
        rig.step()
        rig.close(name)
        closed = len(read_log(log))
        rig.open(stub_request("next"))
        rig.step()
        assert {line.session for line in read_log(log)[closed:]} == {"next"}
        rig.close("next")
    events = [line.event for line in read_log(log)]
    assert events == ["start", "end"] * (len(events) // 2), "two steps at the same time"
    assert rig.instance.blocks is not None
    assert rig.instance.blocks.free == rig.instance.blocks.count


def test_a_kernel_that_answers_for_too_few_units_fails_them_one_by_one() -> None:
    rig = stub_rig()
    rig.open(stub_request("s1"))
    rig.open(stub_request("s2"))
    honest = rig.kernel.run_step
    rig.kernel.run_step = lambda batch: honest(batch)[:1]  # type: ignore[method-assign]
    rig.run(lambda: min(len(rig.frames("s1")), len(rig.frames("s2"))) >= 3)
    assert pixels(rig.frames("s1"))[:3] == alone(3)


def test_a_session_that_cannot_have_its_blocks_fails_alone_and_loses_no_control() -> None:
    rig = stub_rig()
    driver = rig.open(stub_request("s1"))
    rig.run_chunks("s1", 1)
    pool = rig.instance.blocks
    assert pool is not None
    hoard = pool.reserve(pool.free)
    driver.push([PromptInput(ControlId("p"), "a sea")])
    rig.step()
    [failed] = rig.heard_of("s1", StepFailed)
    assert OutOfBlocksError.__name__ in failed.message
    pool.release(hoard)
    rig.run_chunks("s1", 2)
    assert [applied.control for applied in rig.heard_of("s1", ControlApplied)] == ["p"]
