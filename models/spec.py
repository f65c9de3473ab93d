"""What a model family is, said before anything of it is loaded.

A `ModelSpec` names components, loops, programs and capabilities. `ModelSpec.validate` refuses a
description that contradicts itself, so that a server learns of it at start and not in a session.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf
from typing import TypeVar

from reverie.models.controls import ControlSpec, Merge, ParameterSpec
from reverie.models.errors import SpecError

SLOWEST_HZ = 8_000
FASTEST_HZ = 96_000
"""Rates of sound that a stream may have."""


PACE = "pace"
"""The parameter that bounds a loop of text; see `LoopSpec`."""


class StreamKind(StrEnum):
    """What a stream carries."""

    VIDEO = "video"
    AUDIO = "audio"
    TEXT = "text"


class Capability(StrEnum):
    """What a loop can do beyond stepping forward."""

    TEXT_PROMPT = "text_prompt"
    ACTIONS = "actions"
    REWIND = "rewind"
    FORK = "fork"
    DURABLE = "durable"
    """The state's durable part can leave the process and be rebuilt."""
    EXACT_REBUILD = "exact_rebuild"
    """A rebuilt state goes on exactly as the lost one would have."""
    BATCH = "batch"
    """`run_step` computes units with equal batch keys in one pass."""


@dataclass(frozen=True, slots=True)
class ComponentSpec:
    """A part with weights: a transformer, a codec, a text encoder."""

    name: str
    role: str
    parameters: int = 0


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """An output of a loop.

    Attributes:
        name: how events and commands call the stream.
        kind: what it carries.
        width: pixels; 0 for anything but video.
        height: pixels; 0 for anything but video.
        rate_hz: frames or samples a second of media time; 0 for text. Samples: 8000 to 96,000, a
            whole number.
        channels: of sound, 1 or 2; nothing to any other stream.
    """

    name: str
    kind: StreamKind
    width: int = 0
    height: int = 0
    rate_hz: float = 0.0
    channels: int = 1


@dataclass(frozen=True, slots=True)
class InputSpec:
    """An input stream of a loop: media that a person pushes while it runs.

    Attributes:
        name: how commands call the stream, such as `camera`.
        kind: `VIDEO` (single pictures included) or `AUDIO`.
        merge: `LATEST` for a camera, where only the newest counts; `FIFO` for a clip, where every
            frame does.
        capacity: frames or pieces that may wait. Beyond it `LATEST` drops the oldest, `FIFO`
            refuses the newcomer. 0 hands the loop nothing: the session itself listens.
        width: pixels that pictures are scaled to; 0 for audio.
        height: likewise.
        rate_hz: samples a second that sound is resampled to; frames a second of a `FIFO` clip.
        channels: of sound: 1, or 2 for left and right; sound that comes otherwise is mixed.
        label: what a person is shown.
    """

    name: str
    kind: StreamKind
    merge: Merge
    capacity: int
    width: int = 0
    height: int = 0
    rate_hz: float = 0.0
    channels: int = 1
    label: str = ""


@dataclass(frozen=True, slots=True)
class LoopSpec:
    """One named iterative behaviour of a model.

    Attributes:
        name: `world_model`, `video_continuation`, `ar_decode`, ...
        components: names of the components that its steps use.
        streams: what it puts out.
        controls: what it takes, beside prompt and parameters.
        parameters: numbers that a session may change while it runs.
        chunk_frames: frames of the first video stream that become visible together.
        window_blocks: cache blocks of a full context window; 0 when it keeps no cache.
        chunk_blocks: cache blocks that each chunk adds to the window.
        prompt_tokens: longest prompt that the model reads; 0 when it takes none.
        inputs: media that it takes.
        reads: other loops of the program whose newest state it sees (`Controls.sights`).
        takes_turns: whether texts can be said to it (`Controls.turns`).

    A loop without a video or audio stream keeps to no viewer's playhead. A parameter called `pace`
    (`PACE`) is then the most units a second that it puts text out with; 0 sets no limit. Its
    `window_blocks` count the blocks of a sight that its states keep.
    """

    name: str
    components: tuple[str, ...]
    streams: tuple[StreamSpec, ...]
    controls: tuple[ControlSpec, ...] = ()
    parameters: tuple[ParameterSpec, ...] = ()
    chunk_frames: int = 1
    window_blocks: int = 0
    chunk_blocks: int = 0
    prompt_tokens: int = 0
    inputs: tuple[InputSpec, ...] = ()
    reads: tuple[str, ...] = ()
    takes_turns: bool = False
    rebuild_blocks: int = 0

    @property
    def has_media(self) -> bool:
        """Whether it puts out pictures or sound, which a viewer's playhead paces."""
        return any(stream.rate_hz > 0 for stream in self.streams)

    def blocks_a_session(self, history_chunks: int) -> int:
        """Return the cache blocks to hold for one session, so that its steps cannot run out.

        A full window, one chunk in the making, what older chunk states share no longer, and a
        window that is being rebuilt.
        """
        in_use = self.window_blocks + self.chunk_blocks * (1 + history_chunks)
        return in_use + self.rebuild_blocks


@dataclass(frozen=True, slots=True)
class ProgramSpec:
    """What a session can run: loops over one instance, and how far they may run ahead.

    Attributes:
        loops: the first one leads: the session's chunks and its end are this loop's.
        lead_chunks: chunks that may be finished and not yet seen.
        parameters: values that take the place of the loops' own defaults.
    """

    name: str
    loops: tuple[str, ...]
    lead_chunks: int = 1
    parameters: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CapabilityMatrix:
    """Which loop can do what."""

    rows: dict[str, frozenset[Capability]] = field(default_factory=dict)

    def has(self, loop: str, capability: Capability) -> bool:
        """Tell whether `loop` can do `capability`."""
        return capability in self.rows.get(loop, frozenset())


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model family, validated before any weight is read."""

    name: str
    title: str
    licence: str
    components: tuple[ComponentSpec, ...]
    loops: tuple[LoopSpec, ...]
    programs: tuple[ProgramSpec, ...]
    capabilities: CapabilityMatrix
    precisions: tuple[str, ...] = ("float32",)

    def loop(self, name: str) -> LoopSpec:
        """Return the loop called `name`.

        Raises:
            SpecError: the model has none of that name.
        """
        return _named(self.loops, name, f"model {self.name} has no loop {name!r}")

    def program(self, name: str) -> ProgramSpec:
        """Return the program called `name`.

        Raises:
            SpecError: the model has none of that name.
        """
        return _named(self.programs, name, f"model {self.name} has no program {name!r}")

    def program_parameters(self, name: str) -> tuple[ParameterSpec, ...]:
        """Return what can be changed in a program, with its own defaults; of equals the first.

        Raises:
            SpecError: the model has no program of that name.
        """
        program = self.program(name)
        found: dict[str, ParameterSpec] = {}
        for loop in program.loops:
            for spec in self.loop(loop).parameters:
                default = program.parameters.get(spec.name, spec.default)
                found.setdefault(spec.name, replace(spec, default=default))
        return tuple(found.values())

    def blocks_a_session(self, history_chunks: int) -> int:
        """Return the cache blocks to hold for one session, whichever of the programs it runs."""
        return max(
            sum(self.loop(name).blocks_a_session(history_chunks) for name in program.loops)
            for program in self.programs
        )

    def validate(self) -> None:
        """Refuse a description that contradicts itself.

        Raises:
            SpecError: names the first contradiction found.
        """
        model = f"model {self.name}"
        _no_doubles(model, "component", [part.name for part in self.components])
        _no_doubles(model, "loop", [loop.name for loop in self.loops])
        _no_doubles(model, "program", [program.name for program in self.programs])
        known = {part.name for part in self.components}
        for loop in self.loops:
            _check_loop(self, loop, known)
        for program in self.programs:
            if not program.loops:
                raise SpecError(f"program {program.name} of {self.name} runs no loop")
            if program.lead_chunks < 1:
                raise SpecError(f"program {program.name} of {self.name} needs a lead of 1 or more")
            _check_program(self, program)
        for name in self.capabilities.rows:
            self.loop(name)


_Named = TypeVar("_Named", LoopSpec, ProgramSpec)


def _named(items: tuple[_Named, ...], name: str, error: str) -> _Named:
    for item in items:
        if item.name == name:
            return item
    raise SpecError(error)


def _no_doubles(owner: str, what: str, names: list[str]) -> None:
    if len(set(names)) < len(names):
        raise SpecError(f"{owner} names a {what} twice: {', '.join(sorted(names))}")


def _check_loop(model: ModelSpec, loop: LoopSpec, known: set[str]) -> None:
    where = f"loop {loop.name} of {model.name}"
    if unknown := set(loop.components) - known:
        raise SpecError(f"{where} uses unknown components: {', '.join(sorted(unknown))}")
    if not loop.streams:
        raise SpecError(f"{where} puts nothing out")
    _no_doubles(where, "stream", [stream.name for stream in loop.streams])
    names = [control.name for control in loop.controls]
    names += [parameter.name for parameter in loop.parameters]
    _no_doubles(where, "control or parameter", names)
    if loop.chunk_frames < 1:
        raise SpecError(f"{where}: a chunk has at least one frame")
    if min(loop.window_blocks, loop.chunk_blocks, loop.prompt_tokens) < 0:
        raise SpecError(f"{where} counts below zero")
    if loop.window_blocks and not loop.chunk_blocks:
        raise SpecError(f"{where} has a cache window, but no chunk fills it")
    if loop.chunk_blocks and loop.window_blocks % loop.chunk_blocks:
        raise SpecError(f"{where}: the window is not a whole number of chunks")
    if loop.controls and not model.capabilities.has(loop.name, Capability.ACTIONS):
        raise SpecError(f"{where} declares controls without the capability for actions")
    if loop.prompt_tokens and not model.capabilities.has(loop.name, Capability.TEXT_PROMPT):
        raise SpecError(f"{where} reads prompts without the capability for them")
    for stream in loop.streams:
        measures = (stream.width, stream.height, stream.rate_hz)
        if stream.kind is StreamKind.VIDEO and not all(0 < value < inf for value in measures):
            raise SpecError(f"{where}: video stream {stream.name} needs a size and a rate")
        if stream.kind is StreamKind.AUDIO:
            _check_sound(where, stream)
    for control in loop.controls:
        _check_control(where, control)
    _no_doubles(where, "input stream", [stream.name for stream in loop.inputs])
    for given in loop.inputs:
        _check_input(where, given)
    for parameter in loop.parameters:
        if not parameter.low <= parameter.default <= parameter.high:
            raise SpecError(f"{where}: the default of {parameter.name} is outside its range")


def _check_sound(where: str, stream: StreamSpec) -> None:
    rate_hz = stream.rate_hz
    if not (SLOWEST_HZ <= rate_hz <= FASTEST_HZ and float(rate_hz).is_integer()):
        bounds = f"{SLOWEST_HZ} to {FASTEST_HZ} samples a second"
        raise SpecError(f"{where}: audio stream {stream.name} has {bounds}, not {rate_hz:g}")
    if stream.channels not in (1, 2):
        text = f"audio stream {stream.name} has 1 or 2 channels, not {stream.channels}"
        raise SpecError(f"{where}: {text}")


def _check_program(model: ModelSpec, program: ProgramSpec) -> None:
    where = f"program {program.name} of {model.name}"
    loops = [model.loop(name) for name in program.loops]
    _no_doubles(where, "loop", list(program.loops))
    _no_doubles(where, "stream", [stream.name for loop in loops for stream in loop.streams])
    for loop in loops:
        if blind := [name for name in loop.reads if name not in program.loops or name == loop.name]:
            raise SpecError(f"{where}: {loop.name} reads {', '.join(blind)}, which does not run")
    specs = {spec.name: spec for loop in reversed(loops) for spec in loop.parameters}
    for name, value in program.parameters.items():
        if name not in specs:
            raise SpecError(f"{where} sets {name}, which none of its loops has")
        if not specs[name].low <= value <= specs[name].high:
            raise SpecError(f"{where} sets {name} outside its range")


def _check_input(where: str, given: InputSpec) -> None:
    what = f"{where}: input stream {given.name}"
    if given.merge not in (Merge.LATEST, Merge.FIFO):
        raise SpecError(f"{what} is latest or fifo, not {given.merge}")
    if given.capacity < 0:
        raise SpecError(f"{what} holds fewer than 0 pieces")
    match given.kind:
        case StreamKind.VIDEO if min(given.width, given.height) < 1:
            raise SpecError(f"{what} needs a size")
        case StreamKind.VIDEO if given.merge is Merge.FIFO and not 0 < given.rate_hz < inf:
            raise SpecError(f"{what} needs a rate, for a clip has to last as long as it did")
        case StreamKind.AUDIO if given.merge is not Merge.FIFO and given.capacity:
            raise SpecError(f"{what} is fifo, for sound has no gaps")
        case StreamKind.AUDIO:
            _check_sound(
                where, StreamSpec(given.name, given.kind, 0, 0, given.rate_hz, given.channels)
            )
        case StreamKind.TEXT:
            raise SpecError(f"{what} carries pictures or sound; text comes as turns")


def _check_control(where: str, control: ControlSpec) -> None:
    if control.merge is Merge.EDGES and not control.keys:
        raise SpecError(f"{where}: control {control.name} has no keys")
    if len(set(control.keys)) < len(control.keys):
        raise SpecError(f"{where}: control {control.name} names a key twice")
    if control.merge is Merge.SUM and not control.low < control.high:
        raise SpecError(f"{where}: control {control.name} has an empty range")
