"""The machine of a measurement, and the memory that this process uses."""

import os
import platform
from dataclasses import dataclass
from pathlib import Path

import torch

from reverie import __version__


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine and the versions of a measurement."""

    processor: str
    cores: int
    load_at_start: float
    system: str
    python: str
    torch: str
    torch_threads: int
    reverie: str


def this_machine() -> Machine:
    """Describe the machine, for the table."""
    return Machine(
        processor=_processor(),
        cores=os.cpu_count() or 1,
        load_at_start=os.getloadavg()[0],
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        torch=torch.__version__,
        torch_threads=torch.get_num_threads(),
        reverie=__version__,
    )


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def resident_mib() -> float:
    """Return the resident memory of this process and its descendants; 0 without /proc."""
    parents, sizes = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int(
                (folder / "stat").read_text().rsplit(")")[-1].split()[1]
            )
            sizes[int(folder.name)] = int((folder / "statm").read_text().split()[1])
        except OSError:
            continue  # the process ended meanwhile
    ours = {os.getpid()}
    while grown := {child for child, parent in parents.items() if parent in ours} - ours:
        ours |= grown
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    return sum(sizes.get(process, 0) for process in ours) * page_bytes / 2**20
