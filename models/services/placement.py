"""The device, precision and CPU threads of an instance."""

import ctypes
from collections.abc import Mapping, Sequence

import torch

from reverie.models.contract.errors import OptionError
from reverie.models.contract.instance import LoadOptions

AUTO = "auto"
CPU_THREADS = 1
"""Threads wait for each other at every operation: two are twice as fast on two idle cores, but a
tenth as fast next to a server and a browser."""

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT_BYTES = 2**29

_TYPES: Mapping[str, torch.dtype] = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def device_of(options: LoadOptions) -> torch.device:
    """Return the device to load to; for a CPU, also set the number of threads of a step.

    Raises:
        OptionError: the device cannot be used here.
    """
    name = options.device
    if name == AUTO:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        why = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
        raise OptionError(f"device {name!r} cannot be used here: {why}") from error
    if device.type == "cpu":
        torch.set_num_threads(options.threads or CPU_THREADS)
        keep_freed_memory()
    return device


def keep_freed_memory() -> None:
    """Keep memory that tensors free in this process, for the next ones.

    The C library returns large pieces to the system when they are freed, and the next ones must be
    zeroed again: 3,000 page faults a frame of `pocket`, an eighth of its time. Does nothing where
    the library is not glibc (mallopt(3)).
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    for option in (M_MMAP_THRESHOLD, M_TRIM_THRESHOLD):
        mallopt(option, KEPT_BYTES)


def precision_of(
    options: LoadOptions, known: Sequence[str], fast: torch.dtype, model: str
) -> torch.dtype:
    """Return the type to compute in.

    Args:
        known: names of the precisions that the model supports.
        fast: what `auto` chooses on this device.

    Raises:
        OptionError: the model does not support the precision.
    """
    if options.precision == AUTO:
        return fast
    if options.precision not in known:
        names = ", ".join((AUTO, *known))
        raise OptionError(f"precision: {model} supports {names}, not {options.precision!r}")
    return _TYPES[options.precision]


def type_of(precision: str) -> torch.dtype:
    """Return the type of a precision that a model has."""
    return _TYPES[precision]


def name_of(dtype: torch.dtype) -> str:
    """Return the precision of a type."""
    return str(dtype).removeprefix("torch.")


def half_on_cuda(device: torch.device) -> torch.dtype:
    """Return bfloat16 for a GPU and float32 for a CPU."""
    return torch.bfloat16 if device.type == "cuda" else torch.float32
