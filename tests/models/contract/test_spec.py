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
    "a binding of no key": (keys(jump=("Space",)), "control m binds jump, which is no key of it"),
    "a binding to one text": (keys(up="Space"), "binds up to 'Space', which are no codes"),  # type: ignore[arg-type]
    "a binding to no code": (keys(up=("left mouse",)), "which are no codes of keys"),
    "keys that are dragged": (
        with_loop(controls=(ControlSpec("m", Merge.EDGES, ("up",), drag=Drag.X),)),
        "control m is dragged, and is no axis",
    ),
    "an axis dragged some other way": (
        with_loop(controls=(ControlSpec("m", Merge.SUM, drag="z"),)),  # type: ignore[arg-type]
        "is dragged 'z', which is no Drag",
    ),
    "a switch of no stream": (
        with_loop(parameters=(switch(stream="ghost"),)),
        "parameter s switches ghost, which is no stream of it",
    ),
    "a switch with three places": (
        with_loop(parameters=(ParameterSpec("s", 0, 0, 2, integer=True, stream="video"),)),
        "parameter s is a switch, and its range is not 0 to 1",
    ),
    "a pace of pictures": (
        with_loop(parameters=(ParameterSpec("p", 0, 0, 9, role=ParameterRole.PACE),)),
        "parameter p has the role pace, which is for loops of text alone",
    ),
    "a role twice": (
        talking(*(switch(name, role=ParameterRole.BARGE_IN) for name in "ab")),
        "names a role of a parameter twice: barge_in",
    ),
    "a role that there is not": (
        talking(switch(role="singer")),
        "has the role 'singer', which is no ParameterRole",
    ),
    "example prompts of a loop that reads none": (
        replace(GOOD, loops=(LOOP, replace(SECOND, example_prompts=("a lake",)))),
        "loop second .* has example_prompts, and reads no prompt",
    ),
    "example turns of a loop that takes none": (
        with_loop(example_turns=("Where?",)),
        "has example_turns, and takes no turns",
    ),
    "an example without a word": (with_loop(example_prompts=(" ",)), "has the example ' '"),
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
    "a cache that nobody writes": (with_cache(units=()), "cache stub .* has no producer"),
    "a cache of nobody": (with_cache(producers=()), "cache stub .* has no producer"),
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
    "a window of no cache": (with_loop(caches=()), "does not say of which cache"),
    "a cache without a window": (
        replace(GOOD, loops=(LOOP, replace(SECOND, window_blocks=0))),
        "loop second .* reads a cache, and has no window of it",
    ),
    "a cache of a loop that it does not read": (
        replace(TALKING, loops=(TALKING.loops[0], replace(TALKING.loops[1], reads=()))),
        "cannot see the cache stub: it reads no loop that writes it",
    ),
    "a cache twice": (replace(GOOD, caches=GOOD.caches * 2), "cache twice"),
    "caches of different blocks": (
        replace(GOOD, caches=(*GOOD.caches, replace(GOOD.caches[0], name="b", shape=(2,)))),
        "different blocks",
    ),
    "an exact rebuild of nothing": (
        replace(
            GOOD,
            capabilities=CapabilityMatrix(
                {"world_model": frozenset(Capability) - {Capability.DURABLE}}
            ),
        ),
        "without the capability to be durable",
    ),
    "memory below zero": (with_loop(state_bytes=-1), "below zero"),
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
        replace(GOOD, programs=(ProgramSpec("p", ("world_model",), Lead(0)),)),
        "lead of 1",
    ),
    "no programs": (replace(GOOD, programs=()), "no programs"),
    "no precision": (replace(GOOD, precisions=()), "computes in no precision"),
    "an unknown precision": (replace(GOOD, precisions=("float7",)), "'float7', which is unknown"),
    "a block without room": (with_cache(shape=(2, 0)), r"cache stub .* a block of \(2, 0\)"),
    "nothing to share out": (
        replace(GOOD, parallel=ParallelSpec(tensor=0)),
        "parallel.tensor is 0, and 1 is the least",
    ),
    "a model without a name": (replace(GOOD, name=""), "model is called '', which is no name"),
    "a model called by a line": (replace(GOOD, name="a\nb"), "which is no name"),
    "a model called nothing": (replace(GOOD, name=None), "called None, which is no name"),  # type: ignore[arg-type]
    "a loop that is a string": (replace(GOOD, loops=("l",)), "'l' where a LoopSpec belongs"),  # type: ignore[arg-type]
    "a stream without a name": (with_loop(streams=(replace(video(), name=""),)), "is no name"),
    "a control that is latest": (
        with_loop(controls=(ControlSpec("m", Merge.LATEST),)),
        "control m is edges or sum, not latest",
    ),
    "a control that is fifo": (
        with_loop(controls=(ControlSpec("m", Merge.FIFO),)),
        "control m is edges or sum, not fifo",
    ),
    "an endless axis": (
        with_loop(controls=(ControlSpec("m", Merge.SUM, low=float("-inf")),)),
        "control m has no finite range",
    ),
    "a key of two controls": (
        with_loop(
            controls=(ControlSpec("a", Merge.EDGES, ("x",)), ControlSpec("b", Merge.EDGES, ("x",)))
        ),
        "names a key twice: x, x",
    ),
    "an unknown capability": (
        replace(
            GOOD,
            capabilities=CapabilityMatrix({"world_model": frozenset({"teleport"})}),  # type: ignore[arg-type]
        ),
        "no capability 'teleport'",
    ),
    "words with a rate": (
        with_loop(streams=(video(), StreamSpec("t", StreamKind.TEXT, rate_hz=5.0))),
        "text stream t has a rate of 5",
    ),
    "half a pixel": (with_loop(streams=(video(width=96.5),)), "width is 96.5"),  # type: ignore[arg-type]
    "a wall of pixels": (with_loop(streams=(video(height=8193),)), "height is 8193, .*8192"),
    "a wall of pixels coming in": (with_loop(inputs=(camera(width=8193),)), "width is 8193"),
    "what goes in called as what comes out": (
        with_loop(inputs=(camera("video"),), streams=(video(),)),
        "as one that comes out: video",
    ),
    "turns without words": (with_loop(takes_turns=True), "no text stream to answer in"),
    "an integer that is not whole": (
        with_loop(parameters=(ParameterSpec("gain", 0.5, 0.0, 1.0, integer=True),)),
        "parameter gain is an integer",
    ),
    "a parameter without an end": (
        with_loop(parameters=(ParameterSpec("gain", 0.5, 0.0, float("inf")),)),
        "parameter gain has no finite range",
    ),
    "half a frame": (with_loop(chunk_frames=1.5), "chunk_frames is 1.5"),
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
            (ParallelPlan(tensor=8), "parallel.tensor is 8, .* has 12 attention heads"),
            (ParallelPlan(sequence=7), "parallel.sequence is 7, .* has 1560 tokens a call"),
            (ParallelPlan(data=2), "parallel.data is 2, .* cannot be split so"),
            (ParallelPlan(tensor=0), "parallel.tensor is 0, and 1 is the least"),
        ],
    )
    def test_a_plan_that_the_model_cannot_follow_is_refused_by_its_field(
        self, plan: ParallelPlan, words: str
    ) -> None:
        with pytest.raises(OptionError, match=words):
            self.SPLIT.validate(plan)

    def test_a_model_is_not_split_unless_it_says_how(self) -> None:
        with pytest.raises(OptionError, match=r"parallel\.tensor is 2, .* cannot be split so"):
            GOOD.validate(ParallelPlan(tensor=2))


def test_a_component_can_be_described_by_name_and_role_alone() -> None:
    assert ComponentSpec("text", "encoder").parameters == 0
