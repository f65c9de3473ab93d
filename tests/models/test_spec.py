"""Descriptions that contradict themselves are refused before anything is loaded."""

from dataclasses import replace
from typing import Any

import pytest
from stub_model import StubFamily

from reverie.models.controls import ControlSpec, Merge, ParameterSpec
from reverie.models.errors import SpecError
from reverie.models.spec import (
    Capability,
    CapabilityMatrix,
    ComponentSpec,
    LoopSpec,
    ModelSpec,
    ProgramSpec,
    StreamKind,
    StreamSpec,
)

GOOD = StubFamily().spec
LOOP = GOOD.loops[0]


def with_loop(**changes: Any) -> ModelSpec:
    return replace(GOOD, loops=(replace(LOOP, **changes),))


def video(width: int = 64, height: int = 64, rate_hz: float = 24.0) -> StreamSpec:
    return StreamSpec("video", StreamKind.VIDEO, width, height, rate_hz)


def sound(rate_hz: float = 16_000.0, channels: int = 1) -> StreamSpec:
    return StreamSpec("sound", StreamKind.AUDIO, rate_hz=rate_hz, channels=channels)


def test_a_sound_description_passes() -> None:
    GOOD.validate()
    with_loop(streams=(video(), sound(8_000.0), replace(sound(96_000.0, 2), name="b"))).validate()


BAD: dict[str, tuple[ModelSpec, str]] = {
    "a component twice": (replace(GOOD, components=GOOD.components * 2), "component twice"),
    "a loop twice": (replace(GOOD, loops=GOOD.loops * 2), "loop twice"),
    "a program twice": (replace(GOOD, programs=GOOD.programs * 2), "program twice"),
    "an unknown component": (with_loop(components=("stub", "ghost")), "ghost"),
    "no stream": (with_loop(streams=()), "puts nothing out"),
    "a stream twice": (with_loop(streams=(video(), video())), "stream twice"),
    "a control twice": (with_loop(controls=LOOP.controls * 2), "twice"),
    "a control called like a parameter": (
        with_loop(controls=(ControlSpec("step_ms", Merge.SUM),)),
        "twice",
    ),
    "a control without keys": (with_loop(controls=(ControlSpec("m", Merge.EDGES),)), "no keys"),
    "a key twice": (
        with_loop(controls=(ControlSpec("m", Merge.EDGES, ("up", "up")),)),
        "key twice",
    ),
    "an axis without a range": (
        with_loop(controls=(ControlSpec("m", Merge.SUM, low=1.0, high=1.0),)),
        "empty range",
    ),
    "a chunk without frames": (with_loop(chunk_frames=0), "at least one frame"),
    "a window that nothing fills": (with_loop(chunk_blocks=0), "no chunk fills it"),
    "a window of one chunk and a half": (with_loop(window_blocks=3, chunk_blocks=2), "whole"),
    "a negative count": (with_loop(prompt_tokens=-1), "below zero"),
    "controls without the capability": (
        replace(GOOD, capabilities=CapabilityMatrix({"world_model": frozenset()})),
        "capability for actions",
    ),
    "prompts without the capability": (
        replace(
            GOOD,
            capabilities=CapabilityMatrix({"world_model": frozenset({Capability.ACTIONS})}),
        ),
        "capability for them",
    ),
    "no width": (with_loop(streams=(video(width=0),)), "size and a rate"),
    "no rate": (with_loop(streams=(video(rate_hz=0.0),)), "size and a rate"),
    "a rate that is no number": (with_loop(streams=(video(rate_hz=float("nan")),)), "a rate"),
    "an endless rate": (with_loop(streams=(video(rate_hz=float("inf")),)), "a rate"),
    "sound without a rate": (with_loop(streams=(video(), sound(0.0))), "samples a second"),
    "sound that is too slow": (with_loop(streams=(video(), sound(7_999.0))), "samples a second"),
    "half a sample": (with_loop(streams=(video(), sound(11_025.5))), "samples a second"),
    "surround sound": (with_loop(streams=(video(), sound(channels=6))), "1 or 2 channels"),
    "a default outside its range": (
        with_loop(parameters=(ParameterSpec("gain", 3.0, 0.0, 1.0),)),
        "default of gain",
    ),
    "a default that is no number": (
        with_loop(parameters=(ParameterSpec("gain", float("nan"), 0.0, 1.0),)),
        "default of gain",
    ),
    "a program without a loop": (replace(GOOD, programs=(ProgramSpec("p", ()),)), "runs no loop"),
    "a program with an unknown loop": (
        replace(GOOD, programs=(ProgramSpec("p", ("ghost",)),)),
        "no loop 'ghost'",
    ),
    "a program without a lead": (
        replace(GOOD, programs=(ProgramSpec("p", ("world_model",), lead_chunks=0),)),
        "lead of 1",
    ),
    "capabilities of an unknown loop": (
        replace(
            GOOD,
            capabilities=CapabilityMatrix({**GOOD.capabilities.rows, "ghost": frozenset()}),
        ),
        "no loop 'ghost'",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_description_with_a_contradiction_is_refused(name: str) -> None:
    spec, words = BAD[name]
    with pytest.raises(SpecError, match=words):
        spec.validate()


def test_loops_and_programs_are_found_by_name() -> None:
    assert GOOD.loop("world_model") is LOOP
    assert GOOD.program("world").loops == ("world_model",)
    with pytest.raises(SpecError, match="no program 'ghost'"):
        GOOD.program("ghost")


def test_a_session_needs_its_window_its_history_and_a_chunk_in_the_making() -> None:
    loop = LoopSpec("l", (), (), window_blocks=6, chunk_blocks=2)
    assert loop.blocks_a_session(history_chunks=4) == 6 + 2 * 5
    assert LoopSpec("l", (), ()).blocks_a_session(4) == 0


def test_a_component_can_be_described_by_name_and_role_alone() -> None:
    assert ComponentSpec("text", "encoder").parameters == 0
