"""Checks a weight file before a library opens it, and finds the files of one network.

A failed download often leaves something else in a file's place: a git-lfs pointer, the login page
of a site, or the first half. Libraries report all of them as unknown files. Only the first bytes
are read here.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reverie.models.contract.errors import CheckpointError

SUFFIXES = (".safetensors", ".pt", ".pth", ".bin", ".ckpt")
"""Suffixes of files that may contain weights."""

_SHARD = re.compile(r"-\d+-of-\d+$")
_POINTER = b"version https://git-lfs.github.com/spec/"
_PAGES = (b"<!doctype", b"<html", b"<?xml", b"<head")
_ZIP = b"PK\x03\x04"
_ZIP_ENDS = 65_557
"""Bytes from the end within which a zip archive has its end record."""
_LENGTH = 8
_LONGEST_HEADER = 100_000_000
"""Bytes of a safetensors header, as the format limits them."""


@dataclass(frozen=True, slots=True)
class CheckpointPaths:
    """The paths of a checkpoint that an operator has set.

    Attributes:
        checkpoint: a folder, or the file of the transformer.
        parts: the folder with the other parts.
    """

    checkpoint: Path
    parts: Path

    @classmethod
    def of(cls, checkpoint: str | Path, parts: str | Path | None = None) -> "CheckpointPaths":
        """Return the paths; without `parts` the other parts are next to the transformer."""
        path = Path(checkpoint)
        return cls(path, Path(parts) if parts else path.parent if path.is_file() else path)

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders that may have the transformer's configuration, best first."""
        own = self.checkpoint.parent if self.checkpoint.is_file() else self.checkpoint
        return (own,) if own == self.parts else (own, self.parts)


def refuse_stand_in(path: Path) -> None:
    """Refuse a file that a failed download has left.

    Raises:
        CheckpointError: it cannot be read, or is empty, a git-lfs pointer or a web page.
    """
    start = _start(path)
    if not start:
        raise CheckpointError(f"{path} is not a supported checkpoint: it is empty")
    if start.startswith(_POINTER):
        raise CheckpointError(
            f"{path} is a git-lfs pointer, not the file itself: `git lfs pull` fetches it"
        )
    if start.lstrip().lower().startswith(_PAGES):
        raise CheckpointError(f"{path} is a web page, not the file itself: download it again")


def refuse_no_weights(path: Path) -> None:
    """Refuse a file that has no tensors, or only a part of them.

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
                raise CheckpointError(f"{path} is incomplete: the end of its archive is missing")
    else:
        kinds = "neither safetensors nor a file of torch.save since version 1.6"
        raise CheckpointError(f"{path} is not a supported checkpoint: it is {kinds}")


def files_of(
    folder: Path, stem: str, suffixes: Sequence[str] = (".safetensors", ".bin")
) -> tuple[Path, ...]:
    """Return the files of one network as diffusers and transformers save it: one file, or shards.

    Args:
        folder: where it was saved.
        stem: the beginning of its file names.
        suffixes: possible ends of the file names, best first.

    Raises:
        CheckpointError: there are none, some are missing, or there are several copies.
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
            raise duplicates(folder, [group[0] for group in found])
        if found:
            return tuple(found[0])
    raise CheckpointError(f"{folder} has no {stem}.safetensors, neither one file nor shards")


def one_network(folder: Path, what: str, files: Sequence[Path]) -> tuple[Path, ...]:
    """Return files if they are one network: a file, or numbered shards.

    Args:
        folder: where they are.
        what: the plural of their kind, for the error.
        files: at least one.

    Raises:
        CheckpointError: they are several networks; names all, and how to choose.
    """
    first: dict[str, Path] = {}
    for file in files:
        first.setdefault(_SHARD.sub("", file.stem), file)
    if len(first) > 1:
        raise several(folder, what, list(first.values()))
    return tuple(files)


def several(folder: Path, what: str, files: Sequence[Path]) -> CheckpointError:
    """Return the error for a folder with several files to choose from."""
    names = _names(folder, files)
    return CheckpointError(
        f"{folder} contains {len(files)} {what}, {names}: choose one by its path, such as "
        f"--checkpoint {files[0]}; other files that it needs are expected next to it, or in the "
        "folder of --parts"
    )


def duplicates(folder: Path, files: Sequence[Path]) -> CheckpointError:
    """Return the error for a folder with several copies of a part."""
    names = _names(folder, files)
    return CheckpointError(
        f"{folder} contains the same part more than once, {names}: keep one of them"
    )


def _names(folder: Path, files: Sequence[Path]) -> str:
    return " and ".join(str(file.relative_to(folder)) for file in files)


def _listed(index: Path) -> list[Path]:
    refuse_stand_in(index)
    try:
        names = json.loads(index.read_text())["weight_map"].values()
        shards = sorted({index.with_name(str(name)) for name in names})
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointError(f"{index} has no weight_map of files") from error
    if lost := [shard.name for shard in shards if not shard.is_file()]:
        raise CheckpointError(
            f"{index.parent} is missing {', '.join(lost)}, which {index.name} lists"
        )
    if not shards:
        raise CheckpointError(f"{index} has no weight_map of files")
    return shards


def _start(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(256)
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error}") from error


def _refuse_half_safetensors(path: Path, size: int) -> None:
    no = f"{path} is not a safetensors file"
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_LENGTH), "little")
        if length > _LONGEST_HEADER:
            raise CheckpointError(f"{no}: it does not begin with a header")
        header = file.read(length)
    if header[:1] != b"{":
        raise CheckpointError(f"{no}: it does not begin with a header")
    try:
        whole = _LENGTH + length
        if len(header) == length:
            tensors = json.loads(header).items()
            whole += max((t["data_offsets"][1] for n, t in tensors if n[:2] != "__"), default=0)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise CheckpointError(f"{no}: its header cannot be read") from error
    if size < whole:
        raise CheckpointError(f"{path} is incomplete: it has {size} of at least {whole} bytes")
