"""Descriptions that contradict themselves are refused before anything is loaded."""

from dataclasses import replace
from typing import Any

import pytest
from stub_model import StubFamily
from talking_stub import TalkingFamily

from reverie.models.contract.controls import (
    ControlSpec,
    Drag,
    Merge,
    ParameterRole,
    ParameterSpec,
)
from reverie.models.contract.errors import OptionError, SpecError
from reverie.models.contract.spec import (
    Capability,
    CapabilityMatrix,
    ComponentSpec,
    InputSpec,
    Lead,
    LoopSpec,
    ModelSpec,
    ParallelPlan,
    ParallelSpec,
    ProgramSpec,
    StreamKind,
    StreamSpec,
)

GOOD = StubFamily().spec
LOOP = GOOD.loops[0]
SECOND = replace(LOOP, name="second", controls=(), prompt_tokens=0)
WRITTEN_BY_THE_WORLD = replace(TalkingFamily().spec.caches[0], producers=("world_model",))
TALKING = replace(TalkingFamily().spec, caches=(WRITTEN_BY_THE_WORLD,))


def with_loop(**changes: Any) -> ModelSpec:
    return replace(GOOD, loops=(replace(LOOP, **changes),))


def with_cache(**changes: Any) -> ModelSpec:
    return replace(GOOD, caches=(replace(GOOD.caches[0], **changes),))


def video(width: int = 64, height: int = 64, rate_hz: float = 24.0) -> StreamSpec:
    return StreamSpec("video", StreamKind.VIDEO, width, height, rate_hz)


def keys(**bindings: tuple[str, ...]) -> ModelSpec:
    return with_loop(controls=(ControlSpec("m", Merge.EDGES, ("up", "hit"), bindings=bindings),))


def talking(*parameters: ParameterSpec, **changes: Any) -> ModelSpec:
    """A model whose second loop puts out text alone."""
    loop = replace(TALKING.loops[1], parameters=parameters, **changes)
    return replace(TalkingFamily().spec, loops=(TALKING.loops[0], loop))


def switch(name: str = "s", **changes: Any) -> ParameterSpec:
    return ParameterSpec(name, 0.0, 0.0, 1.0, integer=True, **changes)


def sound(rate_hz: float = 16_000.0, channels: int = 1) -> StreamSpec:
    return StreamSpec("sound", StreamKind.AUDIO, rate_hz=rate_hz, channels=channels)


def camera(name: str = "camera", width: int = 64) -> InputSpec:
    return InputSpec(name, StreamKind.VIDEO, Merge.LATEST, 2, width, 64)


def test_a_sound_description_passes() -> None:
    GOOD.validate()
    with_loop(streams=(video(), sound(8_000.0), replace(sound(96_000.0, 2), name="b"))).validate()


def test_what_a_client_is_told_of_a_loop_passes() -> None:
    keys(up=("ArrowUp", "KeyW"), hit=("MouseLeft",)).validate()
    with_loop(controls=(ControlSpec("m", Merge.SUM, drag=Drag.X),)).validate()
    with_loop(example_prompts=("a lake",)).validate()


BAD: dict[str, tuple[ModelSpec, str]] = {
    "a binding of no key": (
        keys(jump=("Space",)),
        "control m binds jump, which is not one of its keys",
    ),
    "a binding to one text": (
        keys(up="Space"),  # type: ignore[arg-type]
        "bindings of up must be KeyboardEvent codes, not 'Space'",
    ),
    "a binding to no code": (keys(up=("left mouse",)), "must be KeyboardEvent codes"),
    "keys that are dragged": (
        with_loop(controls=(ControlSpec("m", Merge.EDGES, ("up",), drag=Drag.X),)),
        "control m has drag, but only an axis",
    ),
    "an axis dragged some other way": (
        with_loop(controls=(ControlSpec("m", Merge.SUM, drag="z"),)),  # type: ignore[arg-type]
        "drag must be a Drag, not 'z'",
    ),
    "a switch of no stream": (
        with_loop(parameters=(switch(stream="ghost"),)),
        "parameter s switches ghost, which is not one of its streams",
    ),
    "a switch with three places": (
        with_loop(parameters=(ParameterSpec("s", 0, 0, 2, integer=True, stream="video"),)),
        "parameter s is a switch, so it must be an integer from 0 to 1",
    ),
    "a pace of pictures": (
        with_loop(parameters=(ParameterSpec("p", 0, 0, 9, role=ParameterRole.PACE),)),
        "parameter p has the role pace, which only loops without video",
    ),
    "a role twice": (
        talking(*(switch(name, role=ParameterRole.BARGE_IN) for name in "ab")),
        "declares a role of a parameter twice: barge_in",
    ),
    "a role that there is not": (
        talking(switch(role="singer")),
        "role must be a ParameterRole, not 'singer'",
    ),
    "example prompts of a loop that reads none": (
        replace(GOOD, loops=(LOOP, replace(SECOND, example_prompts=("a lake",)))),
        "loop second .* has example_prompts but reads no prompt",
    ),
    "example turns of a loop that takes none": (
        with_loop(example_turns=("Where?",)),
        "has example_turns but takes no turns",
    ),
    "an example without a word": (
        with_loop(example_prompts=(" ",)),
        "an example must be text that is not empty, not ' '",
    ),
    "a component twice": (replace(GOOD, components=GOOD.components * 2), "component twice"),
    "a loop twice": (replace(GOOD, loops=GOOD.loops * 2), "loop twice"),
    "a program twice": (replace(GOOD, programs=GOOD.programs * 2), "program twice"),
    "an unknown component": (with_loop(components=("stub", "ghost")), "ghost"),
    "no stream": (with_loop(streams=()), "has no output stream"),
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
        "must have low below high",
    ),
    "a chunk without frames": (with_loop(chunk_frames=0), "chunk_frames must be at least 1"),
    "a window that nothing fills": (with_loop(chunk_blocks=0), "its chunks add no blocks"),
    "a window of one chunk and a half": (with_loop(window_blocks=3, chunk_blocks=2), "whole"),
    "a cache that no unit writes": (with_cache(units=()), "cache stub .* has no producer"),
    "a cache of no loop": (with_cache(producers=()), "cache stub .* has no producer"),
    "a cache of an unknown loop": (
        with_cache(producers=("ghost",)),
        "cache stub .* has no producer: there is no loop 'ghost'",
    ),
    "a cache of a loop whose chunks add nothing": (
        with_loop(window_blocks=0, chunk_blocks=0, caches=()),
        "cache stub .* has no producer: a chunk of world_model adds no block",
    ),
    "a cache that is read and not made": (
        with_loop(caches=("stub", "ghost")),
        "reads the cache ghost, which has no producer",
    ),
    "a window of no cache": (with_loop(caches=()), "does not name the cache"),
    "a cache without a window": (
        replace(GOOD, loops=(LOOP, replace(SECOND, window_blocks=0))),
        "loop second .* reads a cache but has no window of it",
    ),
    "a cache of a loop that it does not read": (
        replace(TALKING, loops=(TALKING.loops[0], replace(TALKING.loops[1], reads=()))),
        "cannot see the cache stub: it does not read a loop that writes it",
    ),
    "a cache twice": (replace(GOOD, caches=GOOD.caches * 2), "cache twice"),
    "caches of different blocks": (
        replace(GOOD, caches=(*GOOD.caches, replace(GOOD.caches[0], name="b", shape=(2,)))),
        "blocks of different shapes",
    ),
    "an exact rebuild of nothing": (
        replace(
            GOOD,
            capabilities=CapabilityMatrix(
                {"world_model": frozenset(Capability) - {Capability.DURABLE}}
            ),
        ),
        "exact_rebuild without durable",
    ),
    "memory below zero": (with_loop(state_bytes=-1), "negative count"),
    "a negative count": (with_loop(prompt_tokens=-1), "negative count"),
    "controls without the capability": (
        replace(GOOD, capabilities=CapabilityMatrix({"world_model": frozenset()})),
        "capability actions",
    ),
    "prompts without the capability": (
        replace(
            GOOD,
            capabilities=CapabilityMatrix({"world_model": frozenset({Capability.ACTIONS})}),
        ),
        "capability text_prompt",
    ),
    "no width": (with_loop(streams=(video(width=0),)), "needs width, height and rate_hz"),
    "no rate": (with_loop(streams=(video(rate_hz=0.0),)), "needs width, height and rate_hz"),
    "a rate that is not a number": (with_loop(streams=(video(rate_hz=float("nan")),)), "rate_hz"),
    "an endless rate": (with_loop(streams=(video(rate_hz=float("inf")),)), "rate_hz"),
    "sound without a rate": (
        with_loop(streams=(video(), sound(0.0))),
        "rate_hz must be a whole number from 8000",
    ),
    "sound that is too slow": (
        with_loop(streams=(video(), sound(7_999.0))),
        "rate_hz must be a whole number from 8000",
    ),
    "half a sample": (
        with_loop(streams=(video(), sound(11_025.5))),
        "rate_hz must be a whole number from 8000",
    ),
    "surround sound": (with_loop(streams=(video(), sound(channels=6))), "channels must be 1 or 2"),
    "a default outside its range": (
        with_loop(parameters=(ParameterSpec("gain", 3.0, 0.0, 1.0),)),
        "default of gain",
    ),
    "a default that is not a number": (
        with_loop(parameters=(ParameterSpec("gain", float("nan"), 0.0, 1.0),)),
        "default of gain",
    ),
    "a program without a loop": (replace(GOOD, programs=(ProgramSpec("p", ()),)), "runs no loop"),
    "a program with an unknown loop": (
        replace(GOOD, programs=(ProgramSpec("p", ("ghost",)),)),
        "no loop 'ghost'",
    ),
    "a program without a lead": (
        replace(GOOD, programs=(ProgramSpec("p", ("world_model",), Lead(0)),)),
        "least_chunks of the lead must be at least 1",
    ),
    "no programs": (replace(GOOD, programs=()), "no programs"),
    "no precision": (replace(GOOD, precisions=()), "model stub has no precision"),
    "an unknown precision": (replace(GOOD, precisions=("float7",)), "unknown precision 'float7'"),
    "a block without room": (
        with_cache(shape=(2, 0)),
        r"cache stub .* whole numbers from 1, not \(2, 0\)",
    ),
    "nothing to share out": (
        replace(GOOD, parallel=ParallelSpec(tensor=0)),
        "parallel.tensor must be at least 1, not 0",
    ),
    "a model without a name": (
        replace(GOOD, name=""),
        "name of a model must be printable text, not ''",
    ),
    "a model called by a line": (replace(GOOD, name="a\nb"), "must be printable text"),
    "a model called nothing": (replace(GOOD, name=None), "must be printable text, not None"),  # type: ignore[arg-type]
    "a loop that is a string": (replace(GOOD, loops=("l",)), "'l' is not a LoopSpec"),  # type: ignore[arg-type]
    "a stream without a name": (
        with_loop(streams=(replace(video(), name=""),)),
        "must be printable text, not ''",
    ),
    "a control that is latest": (
        with_loop(controls=(ControlSpec("m", Merge.LATEST),)),
        "control m: merge must be edges or sum, not latest",
    ),
    "a control that is fifo": (
        with_loop(controls=(ControlSpec("m", Merge.FIFO),)),
        "control m: merge must be edges or sum, not fifo",
    ),
    "an endless axis": (
        with_loop(controls=(ControlSpec("m", Merge.SUM, low=float("-inf")),)),
        "control m: the range must be finite",
    ),
    "a key of two controls": (
        with_loop(
            controls=(ControlSpec("a", Merge.EDGES, ("x",)), ControlSpec("b", Merge.EDGES, ("x",)))
        ),
        "declares a key twice: x",
    ),
    "an unknown capability": (
        replace(
            GOOD,
            capabilities=CapabilityMatrix({"world_model": frozenset({"teleport"})}),  # type: ignore[arg-type]
        ),
        "unknown capability 'teleport'",
    ),
    "words with a rate": (
        with_loop(streams=(video(), StreamSpec("t", StreamKind.TEXT, rate_hz=5.0))),
        "text stream t: rate_hz must be 0 for text, not 5",
    ),
    "half a pixel": (
        with_loop(streams=(video(width=96.5),)),  # type: ignore[arg-type]
        "width must be a whole number up to 8192, not 96.5",
    ),
    "a wall of pixels": (
        with_loop(streams=(video(height=8193),)),
        "height must be a whole number up to 8192, not 8193",
    ),
    "a wall of pixels coming in": (
        with_loop(inputs=(camera(width=8193),)),
        "width must be a whole number up to 8192, not 8193",
    ),
    "what goes in called as what comes out": (
        with_loop(inputs=(camera("video"),), streams=(video(),)),
        "the name video for an input and an output stream",
    ),
    "turns without words": (with_loop(takes_turns=True), "no text stream for the answers"),
    "an integer that is not whole": (
        with_loop(parameters=(ParameterSpec("gain", 0.5, 0.0, 1.0, integer=True),)),
        "parameter gain: default and range of an integer",
    ),
    "a parameter without an end": (
        with_loop(parameters=(ParameterSpec("gain", 0.5, 0.0, float("inf")),)),
        "parameter gain: the range must be finite",
    ),
    "half a frame": (with_loop(chunk_frames=1.5), "chunk_frames must be a whole number, not 1.5"),
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


def test_a_model_that_names_no_cache_fills_a_window_by_its_own_chunks() -> None:
    replace(GOOD, caches=(), loops=(replace(LOOP, caches=()),)).validate()


def test_a_loop_may_read_the_cache_of_a_loop_that_it_sees() -> None:
    TALKING.validate()


class TestMemory:
    """Bytes of a session, from the description alone."""

    def test_they_are_its_blocks_and_what_its_states_hold_beside_them(self) -> None:
        spec = with_loop(window_blocks=6, chunk_blocks=2, state_bytes=1000, chunk_bytes=10)
        spec = replace(spec, caches=(replace(GOOD.caches[0], shape=(2, 8)),))
        assert spec.bytes_a_session(4, "float32") == (6 + 2 * 5) * 16 * 4 + 1000 + 10 * 5
        assert spec.bytes_a_session(4, "bfloat16") == (6 + 2 * 5) * 16 * 2 + 1000 + 10 * 5

    def test_a_model_without_a_cache_has_its_states_alone(self) -> None:
        loop = replace(LOOP, window_blocks=0, chunk_blocks=0, caches=(), state_bytes=7)
        assert replace(GOOD, loops=(loop,), caches=()).bytes_a_session(4, "float32") == 7

    def test_they_are_unknown_where_only_the_weights_tell_how_large_a_block_is(self) -> None:
        assert with_cache(shape=()).bytes_a_session(4, "float32") is None


class TestParallelPlans:
    """Devices that an operator asks for, against what the model has to share out."""

    SPLIT = replace(GOOD, parallel=ParallelSpec(tensor=12, sequence=1560))

    @pytest.mark.parametrize(
        "plan", [ParallelPlan(), ParallelPlan(tensor=4), ParallelPlan(tensor=6, sequence=8)]
    )
    def test_a_plan_that_divides_what_there_is_passes(self, plan: ParallelPlan) -> None:
        self.SPLIT.validate(plan)

    @pytest.mark.parametrize(
        ("plan", "words"),
        [
            (
                ParallelPlan(tensor=8),
                "parallel.tensor must divide the 12 attention heads of model stub, not 8",
            ),
            (
                ParallelPlan(sequence=7),
                "parallel.sequence must divide the 1560 tokens of a call of model stub, not 7",
            ),
            (ParallelPlan(data=2), "parallel.data must be 1: .* cannot be split that way"),
            (ParallelPlan(tensor=0), "parallel.tensor must be at least 1, not 0"),
        ],
    )
    def test_a_plan_that_the_model_cannot_follow_is_refused_by_its_field(
        self, plan: ParallelPlan, words: str
    ) -> None:
        with pytest.raises(OptionError, match=words):
            self.SPLIT.validate(plan)

    def test_a_model_is_not_split_unless_it_says_how(self) -> None:
        with pytest.raises(
            OptionError, match=r"parallel\.tensor must be 1: .* cannot be split that way"
        ):
            GOOD.validate(ParallelPlan(tensor=2))


def test_a_component_can_be_described_by_name_and_role_alone() -> None:
    assert ComponentSpec("text", "encoder").parameters == 0
