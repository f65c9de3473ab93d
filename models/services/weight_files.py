"""What a file is at first sight, before a library opens it; and which files hold one network.

A download often leaves something else in a file's place: the pointer that git-lfs keeps, the page
of a site that asks to log in, or the first half. Libraries tell none of them from a file that they
do not know. Only the first bytes are read here.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reverie.models.contract.errors import CheckpointError

SUFFIXES = (".safetensors", ".pt", ".pth", ".bin", ".ckpt")
"""Of files that may hold weights."""

_SHARD = re.compile(r"-\d+-of-\d+$")
_POINTER = b"version https://git-lfs.github.com/spec/"
_PAGES = (b"<!doctype", b"<html", b"<?xml", b"<head")
_ZIP = b"PK\x03\x04"
_ZIP_ENDS = 65_557
"""Bytes from the end within which a zip archive has the record that ends it."""
_LENGTH = 8
_LONGEST_HEADER = 100_000_000
"""Of a safetensors file, as the format says."""


@dataclass(frozen=True, slots=True)
class CheckpointPaths:
    """Where an operator says that a checkpoint is.

    Attributes:
        checkpoint: a folder, or the file of the transformer.
        parts: the folder with the other parts.
    """

    checkpoint: Path
    parts: Path

    @classmethod
    def of(cls, checkpoint: str | Path, parts: str | Path | None = None) -> "CheckpointPaths":
        """Read the settings; without `parts` they are next to the transformer."""
        path = Path(checkpoint)
        return cls(path, Path(parts) if parts else path.parent if path.is_file() else path)

    @property
    def folders(self) -> tuple[Path, ...]:
        """Where the transformer's own configuration may be, best first."""
        own = self.checkpoint.parent if self.checkpoint.is_file() else self.checkpoint
        return (own,) if own == self.parts else (own, self.parts)


def refuse_stand_in(path: Path) -> None:
    """Refuse what a download leaves in place of a file of any kind.

    Raises:
        CheckpointError: it cannot be read, or is empty, a git-lfs pointer or a web page.
    """
    start = _start(path)
    if not start:
        raise CheckpointError(f"{path} is no checkpoint that is read here: it is empty")
    if start.startswith(_POINTER):
        raise CheckpointError(
            f"{path} is a git-lfs pointer, not the file itself: `git lfs pull` fetches it"
        )
    if start.lstrip().lower().startswith(_PAGES):
        raise CheckpointError(f"{path} is a web page, not the file itself: download it again")


def refuse_no_weights(path: Path) -> None:
    """Refuse a file that cannot hold tensors, or holds a part of them alone.

    Raises:
        CheckpointError: says what it is instead.
    """
    refuse_stand_in(path)
    size = path.stat().st_size
    if path.suffix == ".safetensors":
        _refuse_half_safetensors(path, size)
    elif _start(path).startswith(_ZIP):
        with path.open("rb") as file:
            file.seek(max(0, size - _ZIP_ENDS))
            if b"PK\x05\x06" not in file.read():
                raise CheckpointError(f"{path} is cut short: the end of its archive is missing")
    else:
        kinds = "neither safetensors nor what torch.save writes since version 1.6"
        raise CheckpointError(f"{path} is no checkpoint that is read here: {kinds}")


def files_of(
    folder: Path, stem: str, suffixes: Sequence[str] = (".safetensors", ".bin")
) -> tuple[Path, ...]:
    """Return the files of one network, as diffusers and transformers save it: whole, or in shards.

    Args:
        folder: what it was saved into.
        stem: how its files begin.
        suffixes: how they may end, best first.

    Raises:
        CheckpointError: there are none, some are missing, or it is there more than once.
    """
    for suffix in suffixes:
        whole, index = folder / f"{stem}{suffix}", folder / f"{stem}{suffix}.index.json"
        shards = sorted(folder.glob(f"{stem}-*-of-*{suffix}"))
        if index.is_file() and not whole.is_file():
            shards = _listed(index)
        others = () if whole.is_file() else folder.glob(f"{stem}.*{suffix}")  # `fp16` and so on
        found = [group for group in ([whole] if whole.is_file() else [], shards) if group]
        found += [[other] for other in sorted(others)]
        if len(found) > 1:
            raise twice(folder, [group[0] for group in found])
        if found:
            return tuple(found[0])
    raise CheckpointError(f"{folder} holds no {stem}.safetensors, whole or in parts")


def one_network(folder: Path, what: str, files: Sequence[Path]) -> tuple[Path, ...]:
    """Return files if they are one network: a file, or shards that are numbered.

    Args:
        folder: where they are.
        what: they are called, of several.
        files: at least one.

    Raises:
        CheckpointError: they are several; names all, and how to choose.
    """
    first: dict[str, Path] = {}
    for file in files:
        first.setdefault(_SHARD.sub("", file.stem), file)
    if len(first) > 1:
        raise several(folder, what, list(first.values()))
    return tuple(files)


def several(folder: Path, what: str, files: Sequence[Path]) -> CheckpointError:
    """Return what is said of a folder in which more than one file could be meant."""
    names = _names(folder, files)
    return CheckpointError(
        f"{folder} holds {len(files)} {what}, {names}: choose one by its path, such as "
        f"--checkpoint {files[0]}; what else it needs is looked for next to it, or where --parts "
        "says"
    )


def twice(folder: Path, files: Sequence[Path]) -> CheckpointError:
    """Return what is said of a folder in which a part is there more than once."""
    names = _names(folder, files)
    return CheckpointError(
        f"{folder} holds the same part more than once, {names}: leave one of them there"
    )


def _names(folder: Path, files: Sequence[Path]) -> str:
    return " and ".join(str(file.relative_to(folder)) for file in files)


def _listed(index: Path) -> list[Path]:
    refuse_stand_in(index)
    try:
        names = json.loads(index.read_text())["weight_map"].values()
        shards = sorted({index.with_name(str(name)) for name in names})
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointError(f"{index}: weight_map names no files") from error
    if lost := [shard.name for shard in shards if not shard.is_file()]:
        raise CheckpointError(f"{index.parent} lacks {', '.join(lost)}, which {index.name} names")
    if not shards:
        raise CheckpointError(f"{index}: weight_map names no files")
    return shards


def _start(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(256)
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error}") from error


def _refuse_half_safetensors(path: Path, size: int) -> None:
    no = f"{path} is no safetensors file"
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_LENGTH), "little")
        if length > _LONGEST_HEADER:
            raise CheckpointError(f"{no}: it begins with something else")
        header = file.read(length)
    if header[:1] != b"{":
        raise CheckpointError(f"{no}: it begins with something else")
    try:
        whole = _LENGTH + length
        if len(header) == length:
            tensors = json.loads(header).items()
            whole += max((t["data_offsets"][1] for n, t in tensors if n[:2] != "__"), default=0)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise CheckpointError(f"{no}: its header cannot be read") from error
    if size < whole:
        raise CheckpointError(f"{path} is cut short: {size} bytes are there of {whole} or more")
