"""Public checkpoints: what is in them, whether it fits, and loading it tensor by tensor.

A `CheckpointManifest` describes one public layout: where its tensors are and what they are called
here. `inspect` compares names, shapes and types with a model that has no memory yet (device
`meta`), so that a report costs a look at headers. Only formats that cannot run code are read:
safetensors, and torch files with `weights_only`.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from reverie.models.contract.errors import CheckpointError
from reverie.models.number_types import type_faults
from reverie.models.services.weight_files import refuse_no_weights, refuse_stand_in

SHOWN = 8
"""Names of a kind that a report lists before it only counts."""


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor of a checkpoint, not read yet."""

    shape: tuple[int, ...]
    dtype: str
    read: Callable[[], Tensor]


@dataclass(frozen=True, slots=True)
class CheckpointManifest:
    """One public layout.

    Attributes:
        layout: what people call it.
        files: patterns below the checkpoint's folder; the first that matches anything is taken,
            with all files that match it.
        rename: from a stored name to the model's own; None leaves a tensor out on purpose.
        tops: keys of a torch file's dictionary that may hold the tensors, best first.
    """

    layout: str
    files: tuple[str, ...]
    rename: Callable[[str], str | None] = field(default=lambda name: name)
    tops: tuple[str, ...] = ()

    def find(self, folder: Path) -> tuple[Path, ...]:
        """Return the files of this layout in a folder; none when it is another layout."""
        for pattern in self.files:
            if found := sorted(folder.glob(pattern)):
                return tuple(found)
        return ()

    def find_all(self, folder: Path) -> tuple[Path, ...]:
        """Return the files that match any pattern of this layout."""
        found = {path for pattern in self.files for path in folder.glob(pattern)}
        return tuple(sorted(found))

    def tensors(self, files: tuple[Path, ...]) -> dict[str, StoredTensor]:
        """Return what the files hold, under the model's own names.

        Raises:
            CheckpointError: a file cannot be read, holds none, or two tensors have one name.
        """
        stored: dict[str, StoredTensor] = {}
        for path in files:
            for name, tensor in _stored(path, self.tops):
                own = self.rename(name)
                if own is None:
                    continue
                if own in stored:
                    raise CheckpointError(f"{path}: two tensors are called {own}")
                stored[own] = tensor
        if not stored:
            raise CheckpointError(
                f"{', '.join(map(str, files))}: no tensors in layout {self.layout}"
            )
        return stored


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


def inspect(layout: str, stored: Mapping[str, StoredTensor], model: nn.Module) -> CheckpointReport:
    """Compare a checkpoint with a model, which may be on device `meta`."""
    known = model.state_dict()
    wanted = {name: tuple(value.shape) for name, value in known.items()}
    common = wanted.keys() & stored.keys()
    weights = {name: stored[name].dtype for name in common if known[name].is_floating_point()}
    misshapen = tuple(
        f"{name} is {list(stored[name].shape)}, not {list(wanted[name])}"
        for name in sorted(common)
        if stored[name].shape != wanted[name]
    )
    return CheckpointReport(
        layout=layout,
        matched=len(common) - len(misshapen),
        unmatched=tuple(sorted(stored.keys() - wanted.keys())),
        missing=tuple(sorted(wanted.keys() - stored.keys())),
        misshapen=misshapen,
        dtypes=Counter(tensor.dtype for tensor in stored.values()),
        faults=type_faults(weights),
    )


def fill(
    model: nn.Module,
    stored: Mapping[str, StoredTensor],
    device: torch.device,
    dtype: torch.dtype,
) -> None:
    """Give a model on device `meta` its weights, one tensor in memory at a time.

    Call it after `CheckpointReport.require_fit`.
    """
    for name in list(model.state_dict()):
        value = stored[name].read().to(device, dtype)
        model.load_state_dict({name: value}, strict=False, assign=True)
    model.requires_grad_(False)
    model.eval()


def read_config(path: Path) -> dict[str, Any]:
    """Read a JSON object beside a checkpoint.

    Raises:
        CheckpointError: it is missing or no JSON object.
    """
    refuse_stand_in(path)
    try:
        values = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise CheckpointError(f"cannot read {path}: {error}") from error
    if not isinstance(values, dict):
        raise CheckpointError(f"{path} holds no JSON object")
    return values


def _stored(path: Path, tops: tuple[str, ...]) -> Iterator[tuple[str, StoredTensor]]:
    refuse_no_weights(path)
    try:
        if path.suffix == ".safetensors":
            yield from _from_safetensors(path)
        else:
            yield from _from_torch(path, tops)
    except UnpicklingError as error:  # the library's own words say how to let it run code
        why = "it holds more than tensors, and nothing that could run code is read"
        raise CheckpointError(f"cannot read {path}: {why}") from error
    except (OSError, SafetensorError, RuntimeError, EOFError) as error:
        why = str(error).partition("\n")[0]
        raise CheckpointError(f"cannot read {path}: {why}") from error


def _from_safetensors(path: Path) -> Iterator[tuple[str, StoredTensor]]:
    def reader(name: str) -> Callable[[], Tensor]:
        def read() -> Tensor:
            with safe_open(path, "pt") as file:
                tensor: Tensor = file.get_tensor(name)
                return tensor

        return read

    with safe_open(path, "pt") as file:
        for name in file.keys():  # noqa: SIM118  (no mapping)
            part = file.get_slice(name)
            yield name, StoredTensor(tuple(part.get_shape()), part.get_dtype(), reader(name))


def _from_torch(path: Path, tops: tuple[str, ...]) -> Iterator[tuple[str, StoredTensor]]:
    values = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    for top in tops:
        if isinstance(values, dict) and isinstance(values.get(top), dict):
            values = values[top]
            break
    if not isinstance(values, dict):
        raise CheckpointError(f"{path} holds no dictionary of tensors")
    for name, tensor in values.items():
        if isinstance(tensor, Tensor):
            dtype = str(tensor.dtype).removeprefix("torch.")
            yield name, StoredTensor(tuple(tensor.shape), dtype, partial(_itself, tensor))


def _itself(tensor: Tensor) -> Tensor:
    return tensor
