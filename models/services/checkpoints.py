"""Public checkpoints: their tensors, whether these fit a model, and loading them one by one.

A `CheckpointManifest` describes one public layout: where its tensors are, and their names here.
`inspect` compares names, shapes and types with a model that has no memory yet (device `meta`), so
that a report reads only headers. Only formats that cannot run code are read:
safetensors, and torch files with `weights_only`.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from reverie.models.contract.errors import CheckpointError
from reverie.models.number_types import type_faults
from reverie.models.services.checkpoint_report import CheckpointReport
from reverie.models.services.weight_files import refuse_no_weights, refuse_stand_in


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor of a checkpoint, which is read on demand."""

    shape: tuple[int, ...]
    dtype: str
    read: Callable[[], Tensor]


@dataclass(frozen=True, slots=True)
class CheckpointManifest:
    """One public layout.

    Attributes:
        layout: its name for people.
        files: patterns below the checkpoint's folder; the first that matches anything is taken,
            with all files that match it.
        rename: from a stored name to the model's own; None leaves a tensor out.
        tops: keys of a torch file's dictionary that may hold the tensors, best first.
    """

    layout: str
    files: tuple[str, ...]
    rename: Callable[[str], str | None] = field(default=lambda name: name)
    tops: tuple[str, ...] = ()

    def find(self, folder: Path) -> tuple[Path, ...]:
        """Return the files of this layout in a folder; none if it has another layout."""
        for pattern in self.files:
            if found := sorted(folder.glob(pattern)):
                return tuple(found)
        return ()

    def find_all(self, folder: Path) -> tuple[Path, ...]:
        """Return the files that match any pattern of this layout."""
        found = {path for pattern in self.files for path in folder.glob(pattern)}
        return tuple(sorted(found))

    def tensors(self, files: tuple[Path, ...]) -> dict[str, StoredTensor]:
        """Return the tensors of files, under the model's own names.

        Raises:
            CheckpointError: a file cannot be read or has no tensors, or two tensors have one name.
        """
        stored: dict[str, StoredTensor] = {}
        for path in files:
            for name, tensor in _stored(path, self.tops):
                own = self.rename(name)
                if own is None:
                    continue
                if own in stored:
                    raise CheckpointError(f"{path}: two tensors have the name {own}")
                stored[own] = tensor
        if not stored:
            raise CheckpointError(
                f"{', '.join(map(str, files))}: no tensors in layout {self.layout}"
            )
        return stored


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
    """Read a JSON object of a checkpoint.

    Raises:
        CheckpointError: it is missing or not a JSON object.
    """
    refuse_stand_in(path)
    try:
        values = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise CheckpointError(f"cannot read {path}: {error}") from error
    if not isinstance(values, dict):
        raise CheckpointError(f"{path} is not a JSON object")
    return values


def _stored(path: Path, tops: tuple[str, ...]) -> Iterator[tuple[str, StoredTensor]]:
    refuse_no_weights(path)
    try:
        if path.suffix == ".safetensors":
            yield from _from_safetensors(path)
        else:
            yield from _from_torch(path, tops)
    except UnpicklingError as error:  # the library's message says how to let it run code
        why = "it contains more than tensors, and objects that can run code are not loaded"
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
        raise CheckpointError(f"{path} is not a dictionary of tensors")
    for name, tensor in values.items():
        if isinstance(tensor, Tensor):
            dtype = str(tensor.dtype).removeprefix("torch.")
            yield name, StoredTensor(tuple(tensor.shape), dtype, partial(_itself, tensor))


def _itself(tensor: Tensor) -> Tensor:
    return tensor
