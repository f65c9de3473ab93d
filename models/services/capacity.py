"""How many sessions fit on a device next to the weights that are already there.

The memory of a session is known from a model's description. An operator's number of sessions is a
maximum: a server on a smaller device starts with fewer sessions.
"""

import logging
import os
from collections.abc import Iterator

import torch

from reverie.models.contract.errors import OptionError
from reverie.models.contract.instance import LoadOptions, MemoryBudget
from reverie.models.contract.spec import ModelSpec

logger = logging.getLogger(__name__)

SPARE = 0.15
"""Share of the free memory that is left for temporary tensors of the steps."""


def room_for(
    spec: ModelSpec, options: LoadOptions, device: torch.device, dtype: torch.dtype
) -> MemoryBudget:
    """Return how many of the requested sessions fit. Call it when the weights are loaded.

    The memory of a CPU is not checked: it is shared, and may be swapped.

    Raises:
        OptionError: not even one session fits.
    """
    wanted = MemoryBudget(options.sessions, options.history_chunks)
    if device.type != "cuda":
        return wanted
    return fitted(spec, str(dtype).removeprefix("torch."), wanted, free_bytes_of(device))


def free_bytes_of(device: torch.device) -> int:
    """Return how much of a device's memory caches may take; of a CPU's, half of what is free."""
    if device.type == "cuda":
        free_bytes, _ = torch.cuda.mem_get_info(device)
        return int(free_bytes * (1 - SPARE))
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def fitted(spec: ModelSpec, precision: str, wanted: MemoryBudget, free_bytes: int) -> MemoryBudget:
    """Return how much of `wanted` fits: less history first, then fewer sessions.

    Raises:
        OptionError: not even one session fits.
    """
    room, each = wanted, 0
    for history in _halvings(wanted.history_chunks):
        each = spec.bytes_a_session(history, precision) or 0
        if not each:
            return wanted
        room = MemoryBudget(min(wanted.sessions, free_bytes // each), history)
        if room.sessions == wanted.sessions:
            break
    if room.sessions < 1:
        needed, free = each / 2**30, free_bytes / 2**30
        raise OptionError(
            f"sessions: one session of {spec.name} needs {needed:.1f} GiB in {precision}, with a "
            f"history of one chunk, but {free:.1f} GiB are free next to the weights"
        )
    if room != wanted:
        logger.warning(
            "%s: %d of %d sessions fit on the device, with a history of %d of %d chunks",
            spec.name, room.sessions, wanted.sessions, room.history_chunks, wanted.history_chunks,
        )  # fmt: skip
    return room


def _halvings(count: int) -> Iterator[int]:
    while count > 1:
        yield count
        count //= 2
    yield 1
