"""Pause, single steps, close."""

import pytest
from driving import UNITS, all_blocks_are_free, keys, prompt, stamps, worlds
from loop_rig import stub_rig
from stub_model import prompt_mark

from reverie.engine.emissions import (
    FramesOut,
)
from reverie.engine.errors import (
    LoopEndedError,
)


def test_no_unit_runs_while_paused_and_pausing_is_idempotent() -> None:
    rig = stub_rig()
    driver = rig.open()
    rig.run_chunks("s1", 1)
    rig.step()
    driver.pause()
    driver.pause()
    assert rig.run_idle() == 0
    for _ in range(3):
        driver.resume()
    after = rig.run_chunks("s1", 2)
    assert [chunk.header.pts_us for chunk in after] == [100_000, 200_000]


def test_a_long_pause_is_not_caught_up() -> None:
    rig = stub_rig(seen_at_once=False)
    driver = rig.open()
    rig.run_idle()
    driver.pause()
    rig.clock.now_us += 600_000_000
    driver.resume()
    driver.seen(0, rig.clock())
    rig.run_idle()
    assert len(rig.frames("s1")) == 2


def test_what_is_typed_while_paused_shows_in_the_first_frame_after() -> None:
    for units in range(UNITS):
        rig = stub_rig()
        driver = rig.open()
        rig.run_chunks("s1", 1)
        for _ in range(units):
            rig.step()
        driver.pause()
        shown = len(rig.frames("s1"))
        driver.push([prompt("a sea")])
        driver.resume()
        rig.run_chunks("s1", 1)
        committed = units == UNITS - 1
        first_new = shown + committed
        rig.run(lambda rig=rig, at=first_new: len(rig.frames("s1")) > at)  # type: ignore[misc]
        assert stamps(rig)[first_new].prompt == prompt_mark("a sea")


def test_stepping_puts_out_so_many_chunks_and_pauses_again() -> None:
    rig = stub_rig()
    driver = rig.open()
    driver.pause()
    driver.advance(2)
    rig.run_idle()
    assert len(rig.frames("s1")) == 2
    driver.push([keys("+up", "-up")])
    driver.advance(1)
    rig.run_idle()
    assert [stamp.acting for stamp in stamps(rig)] == [None, None, "up"]
    assert driver.paused


def test_stepping_a_running_session_pauses_it() -> None:
    rig = stub_rig()
    driver = rig.open()
    rig.run_chunks("s1", 1)
    driver.advance(1)
    rig.run_idle()
    assert len(rig.frames("s1")) == 2


@pytest.mark.parametrize("units", range(2 * UNITS))
def test_closing_returns_every_block_wherever_it_comes(units: int) -> None:
    rig = stub_rig()
    driver = rig.open()
    for _ in range(units):
        rig.step()
    driver.close()
    driver.close()
    assert all_blocks_are_free(rig)
    assert driver.ready(0) is None
    with pytest.raises(LoopEndedError):
        driver.reset()
    with pytest.raises(LoopEndedError):
        driver.interrupt(0)


def test_a_cut_chunk_never_arrives_after_a_new_session_took_its_place() -> None:
    rig = stub_rig()
    rig.open()
    rig.run_chunks("s1", 2)
    rig.step()
    rig.step()
    rig.step()
    driver = rig.drivers["s1"]
    assert driver.position.chunk == 1
    driver.watched(False)
    driver.interrupt(1)
    driver.watched(True)
    [after] = rig.run_chunks("s1", 1)
    assert isinstance(after, FramesOut)
    assert (worlds(rig), after.header.chunk) == ([0, 1, 2], 2)


def test_an_interrupt_cancels_the_steps_that_are_still_to_come() -> None:
    rig = stub_rig()
    driver = rig.open()
    driver.advance(5)
    rig.run_chunks("s1", 2)
    driver.interrupt(1)
    assert rig.run_idle() == 0
    assert driver.paused
