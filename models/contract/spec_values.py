"""Single values of a model's description that mean nothing, whatever stands beside them.

Names that cannot be written down, numbers without an end, sizes of half a pixel: each would be
noticed much later, by somebody who did not write it. Each function raises `SpecError` at the first.
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
    """Refuse what is no description of its kind, or has no name to be called by."""
    for item in items:
        if not isinstance(item, kind):
            raise SpecError(f"{owner} has {item!r} where a {kind.__name__} belongs")
        check_name(owner, kind.__name__, getattr(item, "name", None))


def check_name(owner: str, what: str, name: object) -> None:
    """Refuse a name that nobody could write in a command."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise SpecError(f"{owner}: a {what} is called {name!r}, which is no name")


def check_precisions(model: str, precisions: Collection[str], known: Collection[str]) -> None:
    """Refuse a model that computes in nothing, or in what nobody knows."""
    if not precisions:
        raise SpecError(f"{model} computes in no precision; there are {', '.join(known)}")
    for name in precisions:
        if name not in known:
            there = ", ".join(known)
            raise SpecError(f"{model} computes in {name!r}, which is unknown; there are {there}")


def check_capabilities(model: str, capabilities: CapabilityMatrix) -> None:
    """Refuse a capability that there is not."""
    known = [str(capability) for capability in Capability]
    for loop, row in capabilities.rows.items():
        if unknown := sorted(str(name) for name in row if name not in known):
            there = f"there are {', '.join(known)}"
            raise SpecError(f"{model}: loop {loop} has no capability {unknown[0]!r}; {there}")


def check_shares(model: str, parallel: ParallelSpec) -> None:
    """Refuse parts to share out that are none."""
    for field in fields(parallel):
        if not _whole(value := getattr(parallel, field.name), 1):
            raise SpecError(f"{model}: parallel.{field.name} is {value!r}, and 1 is the least")


def check_shape(model: str, cache: CacheSpec) -> None:
    """Refuse a cache block without room."""
    if not all(_whole(side, 1) for side in cache.shape):
        why = "whole numbers from 1"
        raise SpecError(f"cache {cache.name} of {model}: a block of {cache.shape} is not {why}")


def check_values(where: str, loop: LoopSpec) -> None:
    """Look at each number and name of a loop."""
    check_kinds(where, StreamSpec, loop.streams)
    check_kinds(where, InputSpec, loop.inputs)
    check_kinds(where, ControlSpec, loop.controls)
    check_kinds(where, ParameterSpec, loop.parameters)
    counts = ("chunk_frames", "window_blocks", "chunk_blocks", "prompt_tokens")
    for name in (*counts, "rebuild_blocks", "state_bytes", "chunk_bytes"):
        if not isinstance(value := getattr(loop, name), int):
            raise SpecError(f"{where}: {name} is {value!r}, and is a whole number")
    streams: tuple[StreamSpec | InputSpec, ...] = (*loop.streams, *loop.inputs)
    for stream in streams:
        _check_picture(f"{where}: {stream.kind} stream {stream.name}", stream)
    if loop.takes_turns and all(stream.kind is not StreamKind.TEXT for stream in loop.streams):
        raise SpecError(f"{where} takes turns, and has no text stream to answer in")
    for example in (*loop.example_prompts, *loop.example_turns):
        if not isinstance(example, str) or not example.strip():
            raise SpecError(f"{where} has the example {example!r}, which is no text")
    for parameter in loop.parameters:
        _check_parameter(f"{where}: parameter {parameter.name}", parameter)
    for control in loop.controls:
        _check_control(f"{where}: control {control.name}", control)


def _check_picture(what: str, stream: StreamSpec | InputSpec) -> None:
    if stream.kind is StreamKind.TEXT and stream.rate_hz:
        raise SpecError(f"{what} has a rate of {stream.rate_hz:g}, and words have none")
    if stream.kind is not StreamKind.VIDEO:
        return
    for name in ("width", "height"):
        value = getattr(stream, name)
        if not isinstance(value, int) or value > WIDEST:
            raise SpecError(f"{what}: {name} is {value!r}, and is whole, {WIDEST} at most")


def _check_parameter(what: str, parameter: ParameterSpec) -> None:
    if not (isfinite(parameter.low) and isfinite(parameter.high)):
        raise SpecError(f"{what} has no finite range: {parameter.low} to {parameter.high}")
    if not isinstance(parameter.role, ParameterRole):
        raise SpecError(f"{what} has the role {parameter.role!r}, which is no ParameterRole")
    values = (parameter.default, parameter.low, parameter.high)
    if parameter.integer and not all(float(value).is_integer() for value in values):
        raise SpecError(f"{what} is an integer, and its default or range is not whole: {values}")


def _check_control(what: str, control: ControlSpec) -> None:
    if control.merge not in (Merge.EDGES, Merge.SUM):
        raise SpecError(f"{what} is edges or sum, not {control.merge}")
    if control.merge is Merge.SUM and not (isfinite(control.low) and isfinite(control.high)):
        raise SpecError(f"{what} has no finite range: {control.low} to {control.high}")
    for key in control.keys:
        if not isinstance(key, str) or not key:  # a space is one
            raise SpecError(f"{what} has the key {key!r}, which is no name")
    if not isinstance(control.drag, Drag):
        raise SpecError(f"{what} is dragged {control.drag!r}, which is no Drag")
    for key, codes in control.bindings.items():
        if isinstance(codes, str) or not all(fullmatch(_CODE, str(code)) for code in codes):
            raise SpecError(f"{what} binds {key} to {codes!r}, which are no codes of keys")


def _whole(value: object, least: int) -> bool:
    return isinstance(value, int) and value >= least
