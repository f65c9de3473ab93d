"""CPU cores that this process may use."""

import os
from contextlib import suppress
from pathlib import Path

_QUOTAS = (Path("/sys/fs/cgroup/cpu.max"),)


def available_cores(quotas: tuple[Path, ...] = _QUOTAS) -> int:
    """Return how many cores this process may use, at least 1.

    A container may be allowed fewer than its machine has: by affinity, or by a quota of time.

    Args:
        quotas: files as `cpu.max` of Linux's control groups, "QUOTA PERIOD" in microseconds.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    for path in quotas:
        with suppress(OSError, ValueError, ZeroDivisionError):
            quota, period = path.read_text().split()[:2]
            cores = min(cores, int(quota) // int(period))
    return max(1, cores)
