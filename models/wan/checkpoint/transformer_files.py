"""Finds the files of the transformer in a folder of a Wan checkpoint.

Distilled weights often lie next to the base that they were made from, so a folder may contain more
than one transformer. The rule: weights in a separate file are taken before the base weights
(`transformer/`, `diffusion_pytorch_model*.safetensors`) next to them. With several such files the
operator must name one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reverie.models.contract.errors import CheckpointError
from reverie.models.services.checkpoint_report import shown_files
from reverie.models.services.checkpoints import CheckpointManifest
from reverie.models.services.lora_files import is_lora
from reverie.models.services.weight_files import SUFFIXES, files_of, several
from reverie.models.wan.checkpoint.layouts import (
    FIRST_WEIGHT,
    LAYOUTS,
    LONGLIVE,
    ORIGINAL_VAE,
    SELF_FORCING,
    is_longlive,
    layout_of,
)
from reverie.models.wan.network.fast_decoder import holds_fast_decoder

BUNDLED = "lora.pt"
"""The file name of LongLive's own LoRA."""

_STEM = "diffusion_pytorch_model"


@dataclass(frozen=True, slots=True)
class TransformerFiles:
    """The files of the transformer.

    Attributes:
        unused: other files of the folder that look like weights, and why they are not read.
    """

    layout: CheckpointManifest
    files: tuple[Path, ...]
    unused: tuple[str, ...] = ()

    @property
    def is_longlive(self) -> bool:
        """Whether it is LongLive, by the name of the file or of its folder."""
        return is_longlive(self.files[0])


def find_files(checkpoint: Path) -> TransformerFiles:
    """Return the files of the transformer at a path.

    Raises:
        CheckpointError: there is none, none in a known layout, or more than one.
    """
    if checkpoint.is_file():
        return TransformerFiles(layout_of(checkpoint), (checkpoint,))
    if not checkpoint.is_dir():
        raise CheckpointError(f"{checkpoint}: no such file or folder")
    own, unused = _separate_files(checkpoint)
    bases = _bases(checkpoint)
    found = [(file,) for file in own] or bases
    if len(found) > 1:
        raise several(checkpoint, "transformers", [files[0] for files in found])
    if not found:
        known = "; ".join(f"{layout.layout}: {', '.join(layout.files)}" for layout in LAYOUTS)
        left = ", ".join(_lines(unused))
        others = f"; not read: {left}" if left else ""
        raise CheckpointError(f"{checkpoint} has none of the known layouts ({known}){others}")
    if own:
        why = f"base weights: {own[0].name} has precedence"
        unused |= {shown_files(checkpoint, files): why for files in bases}
    chosen = TransformerFiles(layout_of(found[0][0]), found[0])
    if bundled_lora(chosen) is not None:
        unused.pop(BUNDLED, None)
    return replace(chosen, unused=tuple(_lines(unused)))


def bundled_lora(found: TransformerFiles) -> Path | None:
    """Return the LoRA that is part of a published model; None for most."""
    lora = found.files[0].with_name(BUNDLED)
    return lora if found.is_longlive and lora.is_file() else None


def _bases(folder: Path) -> list[tuple[Path, ...]]:
    ported = folder / "transformer"
    groups = []
    if any(ported.glob(f"{_STEM}*")):
        groups.append(files_of(ported, _STEM))
    elif others := sorted(ported.glob("*.safetensors")):
        groups += [(other,) for other in others]
    if any(folder.glob(f"{_STEM}*.safetensors")):
        groups.append(files_of(folder, _STEM))
    return groups


def _separate_files(folder: Path) -> tuple[list[Path], dict[str, str]]:
    """Return files that are a transformer, and what other files of the folder are."""
    found, others = [], {}
    known = {*SELF_FORCING.find_all(folder), *LONGLIVE.find_all(folder)}
    for path in sorted(folder.iterdir()):
        if path.suffix not in SUFFIXES or not path.is_file():
            continue
        if path.name.startswith(_STEM) or path.name == ORIGINAL_VAE or holds_fast_decoder(path):
            continue
        if path in known and not is_lora(path):
            found.append(path)  # even if it cannot be read
        elif what := _what_else(path):
            others[path.name] = what
        else:
            found.append(path)
    return found, others


def _lines(unused: Mapping[str, str]) -> list[str]:
    return [f"{name} ({what})" for name, what in unused.items()]


def _what_else(path: Path) -> str:
    """Return what a file is, if it is not a transformer."""
    if is_lora(path):
        return "a LoRA: serve it with --lora NAME=PATH or --lora-merged PATH"
    try:
        stored = SELF_FORCING.tensors((path,))
    except CheckpointError as error:
        return str(error)
    return "" if FIRST_WEIGHT in stored else "not a Wan transformer"


def used(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Return files, including those in folders, each once and in order."""
    every = [p for path in paths for p in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    return tuple(dict.fromkeys(path for path in every if path.is_file()))
