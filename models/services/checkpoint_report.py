"""How a checkpoint fits a model: a report for programs and for people."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reverie.models.contract.errors import CheckpointError

SHOWN = 8
"""Names of a kind that a report lists; the rest are counted."""


@dataclass(frozen=True, slots=True)
class CheckpointReport:
    """How a checkpoint fits a model.

    Attributes:
        matched: how many tensors fit.
        unmatched: names of tensors that the model does not have.
        missing: names of tensors that the checkpoint does not have.
        misshapen: a line for each tensor of another shape.
        dtypes: how many tensors there are of each type.
        lacking: other files that are needed to serve it and are missing, in words.
        faults: what is wrong with a part as a whole, or between two parts, in words.
        parts: the names of parts and their files.
        unused: files that look like weights and are not read, and why, in words.
    """

    layout: str
    matched: int
    unmatched: tuple[str, ...]
    missing: tuple[str, ...]
    misshapen: tuple[str, ...]
    dtypes: Mapping[str, int]
    lacking: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    parts: tuple[tuple[str, str], ...] = ()
    unused: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether all tensors match the model and no file is missing."""
        wrong = (self.unmatched, self.missing, self.misshapen, self.lacking, self.faults)
        return not any(wrong)

    def joined(self, other: "CheckpointReport") -> "CheckpointReport":
        """Return one report for two parts of a model."""
        return CheckpointReport(
            layout=", with ".join(filter(None, (self.layout, other.layout))),
            matched=self.matched + other.matched,
            unmatched=self.unmatched + other.unmatched,
            missing=self.missing + other.missing,
            misshapen=self.misshapen + other.misshapen,
            dtypes=Counter(self.dtypes) + Counter(other.dtypes),
            lacking=self.lacking + other.lacking,
            faults=self.faults + other.faults,
            parts=self.parts + other.parts,
            unused=self.unused + other.unused,
        )

    def of_part(self, part: str, folder: Path, files: Sequence[Path]) -> "CheckpointReport":
        """Return the same report for a named part of a checkpoint, with its files.

        Args:
            part: its name.
            folder: files inside it are named relative to it.
            files: those of the part.
        """
        where = shown_files(folder, files)

        def with_file(lines: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(f"{line} ({where})" for line in lines)

        return replace(
            self,
            unmatched=with_file(self.unmatched),
            missing=with_file(self.missing),
            misshapen=with_file(self.misshapen),
            parts=((part, where), *self.parts),
        )

    def lines(self) -> Iterator[str]:
        """Yield the report as lines for people."""
        types = ", ".join(f"{count} {dtype}" for dtype, count in sorted(self.dtypes.items()))
        yield f"layout {self.layout}: {self.matched} tensors fit ({types})"
        for what, names in (
            ("tensors that the model does not have", self.unmatched),
            ("tensors missing from the checkpoint", self.missing),
            ("tensors of another shape", self.misshapen),
        ):
            if names:
                more = f", and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
                yield f"{what} ({len(names)}): {', '.join(names[:SHOWN])}{more}"
        if self.lacking:
            yield f"files missing to serve it: {'; '.join(self.lacking)}"
        yield from self.faults

    def full_lines(self) -> Iterator[str]:
        """Yield the report with the file of each part, and the files that are not read."""
        yield from self.lines()
        yield from (f"  {part}: {where}" for part, where in self.parts)
        yield from (f"  not read: {what}" for what in self.unused)

    def require_fit(self) -> None:
        """Refuse a checkpoint that does not fit.

        Raises:
            CheckpointError: names everything that is wrong.
        """
        if not self.fits:
            raise CheckpointError("; ".join(self.lines()))


def shown_files(folder: Path, files: Sequence[Path]) -> str:
    """Return names of files for people; of many files the first and a count."""
    first = files[0]
    name = str(first.relative_to(folder)) if first.is_relative_to(folder) else str(first)
    return name if len(files) == 1 else f"{name} and {len(files) - 1} more"


NOTHING = CheckpointReport("", 0, (), (), (), {})
"""The report of a part without tensors."""


def of_fault(fault: CheckpointError) -> CheckpointReport:
    """Return the report of a part that could not be read."""
    return replace(NOTHING, faults=(str(fault),))
