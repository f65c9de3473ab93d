"""How much memory there is: of a device, or of the machine as far as this process may use it."""

from pathlib import Path

import torch

_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


def free_bytes(device: torch.device) -> int | None:
    """Return what is free; None where that cannot be found out."""
    if device.type == "cuda":
        try:
            free, _ = torch.cuda.mem_get_info(device)
        except RuntimeError:
            return None
        return int(free)
    found = [each for each in (_available(), _left_to_group()) if each is not None]
    return min(found, default=None)


def in_words(size_bytes: int) -> str:
    """Return a size for a person."""
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
    """Return what is left of the limit that a container has, if any."""
    try:
        most = int((_CGROUP / "memory.max").read_text())
        return max(0, most - int((_CGROUP / "memory.current").read_text()))
    except (OSError, ValueError):  # there is no such file, or it says "max"
        return None
