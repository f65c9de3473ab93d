"""Types of numbers that weights are stored in, and those that are no weights by themselves.

A whole number is a weight only together with its scale, and a complex one is none of a model that
computes with real ones. Cast to what the model computes in, both would be noise that nobody was
warned of. The narrow floating-point types are read as the numbers that they are: a checkpoint that
has scales for them has tensors that find no place.
"""

from collections.abc import Mapping

SHOWN = 4
"""Tensors that are named before they are only counted."""

_REAL = (
    "F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2",
    "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip
"""As safetensors and as torch call them."""


def type_faults(types: Mapping[str, str]) -> tuple[str, ...]:
    """Return what is wrong with the types of stored weights, in words; nothing: all can be read.

    Args:
        types: by the names of tensors that the model has as floating-point numbers.
    """
    odd = {name: kind for name, kind in sorted(types.items()) if kind not in _REAL}
    if not odd:
        return ()
    named = ", ".join(f"{name} is {kind}" for name, kind in list(odd.items())[:SHOWN])
    more = f", and {len(odd) - SHOWN} more" if len(odd) > SHOWN else ""
    why = "whole numbers without their scales, or complex ones, are not read"
    return (f"{len(odd)} of a type that is no weight: {named}{more} ({why})",)
