"""The list of models that can be served, for people to read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from reverie.models.checkpoints import CheckpointReport
from reverie.models.errors import ModelError, UnknownModelError
from reverie.models.instance import LoadOptions
from reverie.models.registry import ModelFamily, find_family, installed_families

UNKNOWN = "?"

LOAD_FAULTS = (ModelError, ImportError, OSError, RuntimeError, ValueError)
"""What a family's own code may raise; the list goes on without it."""


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One model, in words.

    Attributes:
        memory: cache memory of one session; unknown when nothing was loaded.
        fault: why the model cannot be served; empty when it can.
    """

    name: str
    title: str = UNKNOWN
    licence: str = UNKNOWN
    programs: tuple[str, ...] = ()
    loops: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    memory: str = UNKNOWN
    fault: str = ""


def catalogue(*, load: bool) -> list[CatalogueEntry]:
    """Describe every installed model; one that is broken is listed with its fault.

    Args:
        load: load each model to learn what memory a session takes.
    """
    return [_entry(name, load=load) for name in sorted(installed_families())]


class ChecksCheckpoints(Protocol):
    """A family that can look at a checkpoint without loading it."""

    def check(self, path: str) -> CheckpointReport:
        """Return how the checkpoint fits; raise `CheckpointError` when it is none."""


def checked(model: str, path: str) -> CheckpointReport:
    """Compare a checkpoint with the family called `model`.

    Raises:
        UnknownModelError: there is no such family, or it cannot look at checkpoints.
        CheckpointError: there is no checkpoint that it knows.
    """
    family = find_family(model)
    if not hasattr(family, "check"):
        raise UnknownModelError(f"model {model!r} cannot check a checkpoint")
    return cast(ChecksCheckpoints, family).check(path)


def as_table(entries: Sequence[CatalogueEntry]) -> str:
    """Lay entries out in columns; faults follow below."""
    head = ("NAME", "TITLE", "PROGRAMS", "LOOPS", "CAPABILITIES", "A SESSION", "LICENCE")
    rows = [head, *(_cells(entry) for entry in entries)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    lines += [f"{entry.name} cannot be served: {entry.fault}" for entry in entries if entry.fault]
    return "\n".join(lines)


def _entry(name: str, *, load: bool) -> CatalogueEntry:
    try:
        family = find_family(name)
    except LOAD_FAULTS as error:
        return CatalogueEntry(name, fault=str(error))
    memory, fault = _session_memory(family) if load else (UNKNOWN, "")
    spec = family.spec
    capabilities = {can for loop in spec.loops for can in spec.capabilities.rows.get(loop.name, ())}
    return CatalogueEntry(
        name=name,
        title=spec.title,
        licence=spec.licence,
        programs=tuple(program.name for program in spec.programs),
        loops=tuple(loop.name for loop in spec.loops),
        capabilities=tuple(sorted(capabilities)),
        memory=memory,
        fault=fault,
    )


def _session_memory(family: ModelFamily) -> tuple[str, str]:
    """Return the memory and the fault: one of them says something."""
    options = LoadOptions(device="cpu", sessions=1)
    try:
        instance = family.load(options)
    except LOAD_FAULTS as error:
        return UNKNOWN, str(error)
    if instance.blocks is None:
        return "0 MiB", ""
    blocks = family.spec.blocks_a_session(options.history_chunks)
    return f"{blocks * instance.blocks.block_bytes / 2**20:.1f} MiB", ""


def _cells(entry: CatalogueEntry) -> tuple[str, ...]:
    return (
        entry.name,
        entry.title,
        ", ".join(entry.programs),
        ", ".join(entry.loops),
        ", ".join(entry.capabilities),
        entry.memory,
        entry.licence,
    )
