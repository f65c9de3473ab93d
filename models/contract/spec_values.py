"""Single values of a model's description that are invalid by themselves.

Names that no command can contain, infinite numbers, sizes of half a pixel: without these checks
each would fail much later, in a session. Each function raises `SpecError` for the first one.
"""

from collections.abc import Collection, Iterable
from dataclasses import fields
from math import isfinite
from re import fullmatch

from reverie.models.contract.controls import (
    ControlSpec,
    Drag,
    Merge,
    ParameterRole,
    ParameterSpec,
)
from reverie.models.contract.errors import SpecError
from reverie.models.contract.loop_spec import CacheSpec, Capability, CapabilityMatrix, LoopSpec
from reverie.models.contract.parallel import ParallelSpec
from reverie.models.contract.streams import InputSpec, StreamKind, StreamSpec

_CODE = r"[A-Z][A-Za-z0-9]*"  # as of a `KeyboardEvent`

WIDEST = 8192
"""Pixels along one side of a picture, at most."""


def check_kinds(owner: str, kind: type, items: Iterable[object]) -> None:
    """Refuse an item that is not of class `kind`, or that has no valid name."""
    for item in items:
        if not isinstance(item, kind):
            raise SpecError(f"{owner}: {item!r} is not a {kind.__name__}")
        check_name(owner, kind.__name__, getattr(item, "name", None))


def check_name(owner: str, what: str, name: object) -> None:
    """Refuse a name that a command could not contain."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise SpecError(f"{owner}: the name of a {what} must be printable text, not {name!r}")


def check_precisions(model: str, precisions: Collection[str], known: Collection[str]) -> None:
    """Refuse a model without a precision, or with an unknown one."""
    if not precisions:
        raise SpecError(f"{model} has no precision; known: {', '.join(known)}")
    for name in precisions:
        if name not in known:
            there = ", ".join(known)
            raise SpecError(f"{model} has the unknown precision {name!r}; known: {there}")


def check_capabilities(model: str, capabilities: CapabilityMatrix) -> None:
    """Refuse an unknown capability."""
    known = [str(capability) for capability in Capability]
    for loop, row in capabilities.rows.items():
        if unknown := sorted(str(name) for name in row if name not in known):
            there = f"known: {', '.join(known)}"
            raise SpecError(f"{model}: loop {loop}: unknown capability {unknown[0]!r}; {there}")


def check_shares(model: str, parallel: ParallelSpec) -> None:
    """Refuse numbers of parts below 1."""
    for field in fields(parallel):
        if not _whole(value := getattr(parallel, field.name), 1):
            raise SpecError(f"{model}: parallel.{field.name} must be at least 1, not {value!r}")


def check_shape(model: str, cache: CacheSpec) -> None:
    """Refuse a cache block without elements."""
    if not all(_whole(side, 1) for side in cache.shape):
        what = f"cache {cache.name} of {model}"
        raise SpecError(f"{what}: shape must be whole numbers from 1, not {cache.shape}")


def check_values(where: str, loop: LoopSpec) -> None:
    """Check each number and name of a loop."""
    check_kinds(where, StreamSpec, loop.streams)
    check_kinds(where, InputSpec, loop.inputs)
    check_kinds(where, ControlSpec, loop.controls)
    check_kinds(where, ParameterSpec, loop.parameters)
    counts = ("chunk_frames", "window_blocks", "chunk_blocks", "prompt_tokens")
    for name in (*counts, "rebuild_blocks", "state_bytes", "chunk_bytes"):
        if not isinstance(value := getattr(loop, name), int):
            raise SpecError(f"{where}: {name} must be a whole number, not {value!r}")
    streams: tuple[StreamSpec | InputSpec, ...] = (*loop.streams, *loop.inputs)
    for stream in streams:
        _check_picture(f"{where}: {stream.kind} stream {stream.name}", stream)
    if loop.takes_turns and all(stream.kind is not StreamKind.TEXT for stream in loop.streams):
        raise SpecError(f"{where} takes turns but has no text stream for the answers")
    for example in (*loop.example_prompts, *loop.example_turns):
        if not isinstance(example, str) or not example.strip():
            raise SpecError(f"{where}: an example must be text that is not empty, not {example!r}")
    for parameter in loop.parameters:
        _check_parameter(f"{where}: parameter {parameter.name}", parameter)
    for control in loop.controls:
        _check_control(f"{where}: control {control.name}", control)


def _check_picture(what: str, stream: StreamSpec | InputSpec) -> None:
    if stream.kind is StreamKind.TEXT and stream.rate_hz:
        raise SpecError(f"{what}: rate_hz must be 0 for text, not {stream.rate_hz:g}")
    if stream.kind is not StreamKind.VIDEO:
        return
    for name in ("width", "height"):
        value = getattr(stream, name)
        if not isinstance(value, int) or value > WIDEST:
            raise SpecError(f"{what}: {name} must be a whole number up to {WIDEST}, not {value!r}")


def _check_parameter(what: str, parameter: ParameterSpec) -> None:
    if not (isfinite(parameter.low) and isfinite(parameter.high)):
        raise SpecError(
            f"{what}: the range must be finite, not {parameter.low} to {parameter.high}"
        )
    if not isinstance(parameter.role, ParameterRole):
        raise SpecError(f"{what}: role must be a ParameterRole, not {parameter.role!r}")
    values = (parameter.default, parameter.low, parameter.high)
    if parameter.integer and not all(float(value).is_integer() for value in values):
        raise SpecError(f"{what}: default and range of an integer must be whole, not {values}")


def _check_control(what: str, control: ControlSpec) -> None:
    if control.merge not in (Merge.EDGES, Merge.SUM):
        raise SpecError(f"{what}: merge must be edges or sum, not {control.merge}")
    if control.merge is Merge.SUM and not (isfinite(control.low) and isfinite(control.high)):
        raise SpecError(f"{what}: the range must be finite, not {control.low} to {control.high}")
    for key in control.keys:
        if not isinstance(key, str) or not key:  # a space is a key
            raise SpecError(f"{what}: a key must be text that is not empty, not {key!r}")
    if not isinstance(control.drag, Drag):
        raise SpecError(f"{what}: drag must be a Drag, not {control.drag!r}")
    for key, codes in control.bindings.items():
        if isinstance(codes, str) or not all(fullmatch(_CODE, str(code)) for code in codes):
            raise SpecError(
                f"{what}: the bindings of {key} must be KeyboardEvent codes, not {codes!r}"
            )


def _whole(value: object, least: int) -> bool:
    return isinstance(value, int) and value >= least
