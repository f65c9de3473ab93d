"""One session's loop, going forward."""

import pytest
from driving import keys, prompt, stamps
from loop_rig import stub_rig
from stub_model import prompt_mark, read_stamp

from reverie.engine.emissions import (
    ControlApplied,
    ControlSuperseded,
)
from reverie.engine.errors import (
    UnknownControlError,
)
from reverie.engine.inputs import (
    ControlId,
    ControlInput,
    ParameterInput,
)


def test_chunks_are_numbered_and_timed_without_gaps() -> None:
    rig = stub_rig()
    rig.open()
    frames = rig.run_chunks("s1", 5)
    assert [chunk.header.chunk for chunk in frames] == [0, 1, 2, 3, 4]
    assert [chunk.header.pts_us for chunk in frames] == [0, 100_000, 200_000, 300_000, 400_000]
    assert {chunk.header.duration_us for chunk in frames} == {50_000}
    assert not any(chunk.header.discontinuity for chunk in frames)
    assert [read_stamp(frame).frame for frame in frames[0].frames] == [0, 1]


def test_a_control_acts_in_the_next_chunk_and_its_receipt_names_the_frame() -> None:
    rig = stub_rig()
    driver = rig.open()
    rig.run_chunks("s1", 2)
    driver.push([prompt("a neon blargville city")])
    [after] = rig.run_chunks("s1", 1)
    assert read_stamp(after.frames[0]).prompt == prompt_mark("a neon blargville city")
    [receipt] = rig.heard_of("s1", ControlApplied)
    assert (receipt.control, receipt.chunk, receipt.pts_us) == ("p", 2, after.header.pts_us)
    assert receipt.unknown_words == ("blargville",)
    assert receipt.step == after.header.step - 2
    heard = rig.heard["s1"]
    assert heard.index(receipt) < heard.index(after)


def test_only_the_prompts_receipt_says_what_the_encoder_made_of_it() -> None:
    rig = stub_rig()
    driver = rig.open()
    driver.push([keys("+up"), prompt("blarg " * 40)])
    rig.run_chunks("s1", 1)
    held, told = rig.heard_of("s1", ControlApplied)
    assert (held.control, held.unknown_words, held.truncated_at) == ("k", (), None)
    assert (told.control, told.truncated_at) == ("p", 32)


def test_a_tap_within_a_step_and_a_held_key_are_both_seen() -> None:
    rig = stub_rig()
    driver = rig.open()
    rig.step()
    driver.push([keys("+up", "-up", "+left")])
    rig.run_chunks("s1", 3)
    _, tapped, held = stamps(rig)
    assert (tapped.acting, sorted(tapped.held), tapped.presses) == ("up", ["left"], 2)
    assert (held.acting, sorted(held.held), held.presses) == ("left", ["left"], 0)


def test_five_clicks_within_a_step_are_counted() -> None:
    rig = stub_rig()
    driver = rig.open()
    driver.push([keys("+up", "-up", control=f"k{click}") for click in range(5)])
    rig.run_chunks("s1", 1)
    assert stamps(rig)[0].presses == 5
    assert len(rig.heard_of("s1", ControlApplied)) == 5


def test_releasing_all_keys_stops_the_movement_in_the_next_chunk() -> None:
    rig = stub_rig()
    driver = rig.open()
    driver.push([keys("+up", "+left")])
    rig.run_chunks("s1", 2)
    driver.release_keys()
    rig.run_chunks("s1", 2)
    assert [stamp.held for stamp in stamps(rig)[1:]] == [{"up", "left"}, set(), set()]


def test_a_burst_of_controls_is_taken_once_a_chunk_and_each_is_answered_once() -> None:
    rig = stub_rig()
    driver = rig.open()
    sent = []
    for step in range(40):
        burst: list[ControlInput] = [
            prompt(f"prompt {step} {index}", f"p{step}.{index}") for index in range(50)
        ]
        sent += [item.control for item in burst]
        driver.push(burst)
        rig.step()
    rig.run_chunks("s1", 2)
    applied = rig.heard_of("s1", ControlApplied)
    superseded = rig.heard_of("s1", ControlSuperseded)
    assert sorted(told.control for told in applied + superseded) == sorted(sent)
    assert len({told.chunk for told in applied}) == len(applied), "two prompts in one chunk"
    assert stamps(rig)[-1].prompt == prompt_mark("prompt 39 49")


def test_an_unknown_control_is_refused_and_nothing_changes() -> None:
    rig = stub_rig()
    driver = rig.open()
    with pytest.raises(UnknownControlError):
        driver.push([prompt("a sea"), ParameterInput(ControlId("x"), "contrast", 1.0)])
    rig.run_chunks("s1", 1)
    assert stamps(rig)[0].prompt == prompt_mark("a frozen lake")


def test_a_chunk_is_denoised_decoded_and_taken_into_the_context_before_the_next_one() -> None:
    rig = stub_rig()
    rig.open()
    rig.run_chunks("s1", 2)
    units = rig.units("s1")
    kinds = [unit.kind for unit in units]
    assert kinds == ["denoise", "denoise", "decode", "context", "denoise", "denoise", "decode"]
    assert [unit.step for unit in units] == list(range(7))
    assert [unit.chunk for unit in units] == [0, 0, 0, 1, 1, 1, 1]
