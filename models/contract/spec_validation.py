"""Contradictions in a model's description, found before any weight is read.

Each function looks at one part and raises `SpecError` at the first contradiction.
"""

from collections.abc import Mapping, Sequence
from math import inf

from reverie.models.contract.controls import (
    ControlSpec,
    Drag,
    Merge,
    ParameterRole,
    ParameterSpec,
)
from reverie.models.contract.errors import SpecError
from reverie.models.contract.loop_spec import (
    CacheSpec,
    Capability,
    CapabilityMatrix,
    LoopSpec,
    ProgramSpec,
)
from reverie.models.contract.streams import (
    FASTEST_HZ,
    SLOWEST_HZ,
    InputSpec,
    StreamKind,
    StreamSpec,
)


def check_names(owner: str, what: str, names: Sequence[str]) -> None:
    """Refuse a name that is used twice."""
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise SpecError(f"{owner} declares a {what} twice: {', '.join(twice)}")


def check_loop(
    where: str, loop: LoopSpec, components: Sequence[str], capabilities: CapabilityMatrix
) -> None:
    """Look at a loop by itself.

    Args:
        where: what an error calls it.
        components: those that the model has.
    """
    if unknown := set(loop.components) - set(components):
        raise SpecError(f"{where} uses unknown components: {', '.join(sorted(unknown))}")
    if not loop.streams:
        raise SpecError(f"{where} has no output stream")
    check_names(where, "stream", [stream.name for stream in loop.streams])
    names = [control.name for control in loop.controls]
    names += [parameter.name for parameter in loop.parameters]
    check_names(where, "control or parameter", names)
    _check_sizes(where, loop)
    _check_capabilities(where, loop, capabilities)
    for stream in loop.streams:
        _check_stream(where, stream)
    for control in loop.controls:
        _check_control(where, control)
    check_names(where, "input stream", [stream.name for stream in loop.inputs])
    for given in loop.inputs:
        _check_input(where, given)
    if both := {stream.name for stream in loop.streams} & {given.name for given in loop.inputs}:
        raise SpecError(f"{where} uses the name {min(both)} for an input and an output stream")
    check_names(where, "key", [key for control in loop.controls for key in control.keys])
    for parameter in loop.parameters:
        _check_parameter(where, parameter, loop)
    roles = [spec.role.value for spec in loop.parameters if spec.role is not ParameterRole.NONE]
    check_names(where, "role of a parameter", roles)
    if loop.example_prompts and not loop.prompt_tokens:
        raise SpecError(f"{where} has example_prompts but reads no prompt")
    if loop.example_turns and not loop.takes_turns:
        raise SpecError(f"{where} has example_turns but takes no turns")


def check_program(where: str, program: ProgramSpec, loops: Sequence[LoopSpec]) -> None:
    """Look at a program and the loops that it runs."""
    if not loops:
        raise SpecError(f"{where} runs no loop")
    if program.lead.least_chunks < 1:
        raise SpecError(f"{where}: least_chunks of the lead must be at least 1")
    if program.lead.most_ms < 0:
        raise SpecError(f"{where}: most_ms of the lead must not be negative")
    check_names(where, "loop", list(program.loops))
    check_names(where, "stream", [stream.name for loop in loops for stream in loop.streams])
    for loop in loops:
        if blind := [name for name in loop.reads if name not in program.loops or name == loop.name]:
            raise SpecError(
                f"{where}: {loop.name} reads {', '.join(blind)}, which the program does not run"
            )
    specs = {spec.name: spec for loop in reversed(loops) for spec in loop.parameters}
    for name, value in program.parameters.items():
        if name not in specs:
            raise SpecError(f"{where} sets {name}, which none of its loops has")
        if not specs[name].low <= value <= specs[name].high:
            raise SpecError(f"{where} sets {name} outside its range")
        if specs[name].integer and not float(value).is_integer():
            raise SpecError(f"{where} sets {name} to {value:g}, which is not a whole number")


def check_caches(model: str, caches: Sequence[CacheSpec], loops: Mapping[str, LoopSpec]) -> None:
    """Check that every cache has a loop that writes it, and that loops read only such caches.

    A model that names no cache has one for each loop with a window, which that loop's own chunks
    fill.
    """
    check_names(model, "cache", [cache.name for cache in caches])
    for cache in caches:
        where = f"cache {cache.name} of {model}"
        if not cache.producers or not cache.units:
            raise SpecError(f"{where} has no producer: no unit writes it")
        for name in cache.producers:
            if name not in loops:
                raise SpecError(f"{where} has no producer: there is no loop {name!r}")
            if not loops[name].chunk_blocks:
                raise SpecError(f"{where} has no producer: a chunk of {name} adds no block")
    if len({cache.shape for cache in caches}) > 1:
        raise SpecError(
            f"{model} has caches with blocks of different shapes, but one pool holds all of them"
        )
    producers = {cache.name: cache.producers for cache in caches}
    for loop in loops.values():
        _check_reading(f"loop {loop.name} of {model}", loop, producers)


def _check_reading(where: str, loop: LoopSpec, producers: Mapping[str, Sequence[str]]) -> None:
    if unmade := [name for name in loop.caches if name not in producers]:
        raise SpecError(f"{where} reads the cache {unmade[0]}, which has no producer")
    if producers and loop.window_blocks and not loop.caches:
        raise SpecError(f"{where} has a cache window but does not name the cache")
    if loop.caches and not loop.window_blocks:
        raise SpecError(f"{where} reads a cache but has no window of it")
    for name in loop.caches:
        if not {loop.name, *loop.reads} & set(producers[name]):
            why = f"it does not read a loop that writes it ({', '.join(producers[name])})"
            raise SpecError(f"{where} cannot see the cache {name}: {why}")


def _check_sizes(where: str, loop: LoopSpec) -> None:
    if loop.chunk_frames < 1:
        raise SpecError(f"{where}: chunk_frames must be at least 1")
    counts = (loop.window_blocks, loop.chunk_blocks, loop.prompt_tokens)
    if min(*counts, loop.rebuild_blocks, loop.state_bytes, loop.chunk_bytes) < 0:
        raise SpecError(f"{where} has a negative count")
    if loop.window_blocks and not loop.chunk_blocks:
        raise SpecError(f"{where} has a cache window, but its chunks add no blocks")
    if loop.chunk_blocks and loop.window_blocks % loop.chunk_blocks:
        raise SpecError(
            f"{where}: a window of {loop.window_blocks} cache blocks is not a whole number of "
            f"chunks of {loop.chunk_blocks}"
        )


def _check_capabilities(where: str, loop: LoopSpec, capabilities: CapabilityMatrix) -> None:
    def can(capability: Capability) -> bool:
        return capabilities.has(loop.name, capability)

    if loop.controls and not can(Capability.ACTIONS):
        raise SpecError(f"{where} declares controls without the capability actions")
    if loop.prompt_tokens and not can(Capability.TEXT_PROMPT):
        raise SpecError(f"{where} reads prompts without the capability text_prompt")
    if can(Capability.EXACT_REBUILD) and not can(Capability.DURABLE):
        raise SpecError(f"{where} has the capability exact_rebuild without durable")


def _check_stream(where: str, stream: StreamSpec) -> None:
    measures = (stream.width, stream.height, stream.rate_hz)
    if stream.kind is StreamKind.VIDEO and not all(0 < value < inf for value in measures):
        raise SpecError(f"{where}: video stream {stream.name} needs width, height and rate_hz")
    if stream.kind is StreamKind.AUDIO:
        _check_sound(where, stream)


def _check_sound(where: str, stream: StreamSpec) -> None:
    rate_hz = stream.rate_hz
    if not (SLOWEST_HZ <= rate_hz <= FASTEST_HZ and float(rate_hz).is_integer()):
        bounds = f"a whole number from {SLOWEST_HZ} to {FASTEST_HZ}"
        what = f"audio stream {stream.name}"
        raise SpecError(f"{where}: {what}: rate_hz must be {bounds}, not {rate_hz:g}")
    if stream.channels not in (1, 2):
        text = f"audio stream {stream.name}: channels must be 1 or 2, not {stream.channels}"
        raise SpecError(f"{where}: {text}")


def _check_input(where: str, given: InputSpec) -> None:
    what = f"{where}: input stream {given.name}"
    if given.merge not in (Merge.LATEST, Merge.FIFO):
        raise SpecError(f"{what}: merge must be latest or fifo, not {given.merge}")
    if given.capacity < 0:
        raise SpecError(f"{what}: capacity must not be negative")
    match given.kind:
        case StreamKind.VIDEO if min(given.width, given.height) < 1:
            raise SpecError(f"{what} needs a width and a height")
        case StreamKind.VIDEO if given.merge is Merge.FIFO and not 0 < given.rate_hz < inf:
            raise SpecError(f"{what} needs rate_hz, because a clip keeps its duration")
        case StreamKind.AUDIO if given.merge is not Merge.FIFO and given.capacity:
            raise SpecError(f"{what}: merge must be fifo for sound")
        case StreamKind.AUDIO:
            _check_sound(
                where, StreamSpec(given.name, given.kind, 0, 0, given.rate_hz, given.channels)
            )
        case StreamKind.TEXT:
            raise SpecError(
                f"{what} carries text, but only pictures and sound can be pushed; "
                "text is sent as turns"
            )


def _check_parameter(where: str, parameter: ParameterSpec, loop: LoopSpec) -> None:
    what = f"parameter {parameter.name}"
    if not parameter.low <= parameter.default <= parameter.high:
        raise SpecError(f"{where}: the default of {parameter.name} is outside its range")
    if parameter.stream and parameter.stream not in [stream.name for stream in loop.streams]:
        raise SpecError(
            f"{where}: {what} switches {parameter.stream}, which is not one of its streams"
        )
    if (parameter.stream or parameter.role is ParameterRole.BARGE_IN) and not parameter.is_switch:
        raise SpecError(f"{where}: {what} is a switch, so it must be an integer from 0 to 1")
    if parameter.role is not ParameterRole.NONE and loop.has_media:
        text = (
            f"{what} has the role {parameter.role}, which only loops without video and "
            "audio may have"
        )
        raise SpecError(f"{where}: {text}")


def _check_control(where: str, control: ControlSpec) -> None:
    if control.merge is Merge.EDGES and not control.keys:
        raise SpecError(f"{where}: control {control.name} has no keys")
    if len(set(control.keys)) < len(control.keys):
        raise SpecError(f"{where}: control {control.name} names a key twice")
    if control.merge is Merge.SUM and not control.low < control.high:
        raise SpecError(f"{where}: control {control.name} must have low below high")
    if unknown := [key for key in control.bindings if key not in control.keys]:
        raise SpecError(
            f"{where}: control {control.name} binds {unknown[0]}, which is not one of its keys"
        )
    if control.drag is not Drag.NONE and control.merge is not Merge.SUM:
        raise SpecError(
            f"{where}: control {control.name} has drag, but only an axis (sum) can be dragged"
        )
