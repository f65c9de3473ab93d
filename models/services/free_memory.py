"""How much memory is free on a device, or on the host for this process."""

from pathlib import Path

import torch

_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


def free_bytes(device: torch.device) -> int | None:
    """Return how many bytes are free; None where that is unknown."""
    if device.type == "cuda":
        try:
            free, _ = torch.cuda.mem_get_info(device)
        except RuntimeError:
            return None
        return int(free)
    found = [each for each in (_available(), _left_to_group()) if each is not None]
    return min(found, default=None)


def in_words(size_bytes: int) -> str:
    """Return a size in words."""
    size = float(size_bytes)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} EiB"


def _available() -> int | None:
    try:
        lines = _MEMINFO.read_text().splitlines()
    except OSError:
        return None
    found = (line.split() for line in lines if line.startswith("MemAvailable:"))
    return next((int(parts[1]) * 1024 for parts in found), None)


def _left_to_group() -> int | None:
    """Return how much is left of a container's limit, if there is one."""
    try:
        most = int((_CGROUP / "memory.max").read_text())
        return max(0, most - int((_CGROUP / "memory.current").read_text()))
    except (OSError, ValueError):  # there is no such file, or it contains "max"
        return None
