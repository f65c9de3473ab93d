"""How a checkpoint fits a model: a report for programs and for people."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reverie.models.contract.errors import CheckpointError

SHOWN = 8
"""Names of a kind that a report lists before it only counts."""


@dataclass(frozen=True, slots=True)
class CheckpointReport:
    """How a checkpoint fits a model.

    Attributes:
        matched: tensors that fit.
        unmatched: names that the model does not have.
        missing: names of the model that the checkpoint does not have.
        misshapen: a line for each tensor of another shape.
        dtypes: how many tensors there are of each type.
        lacking: what else is needed to serve it and is not there, in words.
        faults: what is wrong with a part as a whole, or between two parts, in words.
        parts: which file is which part.
        unused: files that look like weights and are left alone, and why, in words.
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
        """Whether each tensor has its place, each place its tensor, and nothing is lacking."""
        wrong = (self.unmatched, self.missing, self.misshapen, self.lacking, self.faults)
        return not any(wrong)

    def joined(self, other: "CheckpointReport") -> "CheckpointReport":
        """Return what both say, of two parts of one model."""
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
        """Return the same, said of one part of a checkpoint and of its files.

        Args:
            part: what it is called.
            folder: what the files are named from, as far as they are in it.
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
        """Say it for a person."""
        types = ", ".join(f"{count} {dtype}" for dtype, count in sorted(self.dtypes.items()))
        yield f"layout {self.layout}: {self.matched} tensors fit ({types})"
        for what, names in (
            ("not in the model", self.unmatched),
            ("not in the checkpoint", self.missing),
            ("of another shape", self.misshapen),
        ):
            if names:
                more = f", and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
                yield f"{len(names)} {what}: {', '.join(names[:SHOWN])}{more}"
        if self.lacking:
            yield f"to be served it lacks {'; '.join(self.lacking)}"
        yield from self.faults

    def told(self) -> Iterator[str]:
        """Say all of it for a person who asked: which file is which part, too."""
        yield from self.lines()
        yield from (f"  {part}: {where}" for part, where in self.parts)
        yield from (f"  not used: {what}" for what in self.unused)

    def require_fit(self) -> None:
        """Refuse what does not fit.

        Raises:
            CheckpointError: says all that is wrong.
        """
        if not self.fits:
            raise CheckpointError("; ".join(self.lines()))


def shown_files(folder: Path, files: Sequence[Path]) -> str:
    """Name files of a folder for a person; of many the first."""
    first = files[0]
    name = str(first.relative_to(folder)) if first.is_relative_to(folder) else str(first)
    return name if len(files) == 1 else f"{name} and {len(files) - 1} more"


NOTHING = CheckpointReport("", 0, (), (), (), {})
"""The report of a part without tensors."""


def of_fault(fault: CheckpointError) -> CheckpointReport:
    """Return the report of a part that could not be looked at."""
    return replace(NOTHING, faults=(str(fault),))
