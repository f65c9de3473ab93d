"""Number types that weights can be stored in, and those that cannot be read as weights.

Integers are weights only together with their scales, and the models here compute with real numbers,
not complex ones. Cast to the model's type, both would be noise without a warning. The narrow
floating-point types are read as they are: a checkpoint that has scales for them has tensors that do
not match.
"""

from collections.abc import Mapping

SHOWN = 4
"""Tensors that are listed by name; the rest are counted."""

_REAL = (
    "F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2",
    "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip
"""As safetensors and as torch call them."""


def type_faults(types: Mapping[str, str]) -> tuple[str, ...]:
    """Return what is wrong with the types of stored weights, in words; empty when all can be read.

    Args:
        types: of the tensors that are floating-point numbers in the model, by name.
    """
    odd = {name: kind for name, kind in sorted(types.items()) if kind not in _REAL}
    if not odd:
        return ()
    named = ", ".join(f"{name} is {kind}" for name, kind in list(odd.items())[:SHOWN])
    more = f", and {len(odd) - SHOWN} more" if len(odd) > SHOWN else ""
    why = "quantised and complex weights are not supported"
    return (f"tensors with an unsupported type ({len(odd)}): {named}{more} ({why})",)
