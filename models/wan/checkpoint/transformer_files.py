"""Which file of a folder is which part of a Wan checkpoint.

People keep distilled weights next to the base that they were made from, so a folder may hold more
than one transformer. The rule: weights in a file of their own are taken before the base weights
(`transformer/`, `diffusion_pytorch_model*.safetensors`) next to them. Of several, none is taken:
the operator names one.
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

BROUGHT = "lora.pt"
"""What LongLive's own LoRA is called."""

_STEM = "diffusion_pytorch_model"


@dataclass(frozen=True, slots=True)
class TransformerFiles:
    """The files of the transformer.

    Attributes:
        unused: what else of the folder looks like weights, and why it is left alone.
    """

    layout: CheckpointManifest
    files: tuple[Path, ...]
    unused: tuple[str, ...] = ()

    @property
    def is_longlive(self) -> bool:
        """Whether it is LongLive, by the name of the file, or else of its folder."""
        return is_longlive(self.files[0])


def find_files(checkpoint: Path) -> TransformerFiles:
    """Return the files of the transformer that a path names.

    Raises:
        CheckpointError: there is nothing, nothing known, or more than one.
    """
    if checkpoint.is_file():
        return TransformerFiles(layout_of(checkpoint), (checkpoint,))
    if not checkpoint.is_dir():
        raise CheckpointError(f"{checkpoint}: no such file or folder")
    own, unused = _files_of_their_own(checkpoint)
    bases = _bases(checkpoint)
    found = [(file,) for file in own] or bases
    if len(found) > 1:
        raise several(checkpoint, "transformers", [files[0] for files in found])
    if not found:
        known = "; ".join(f"{layout.layout}: {', '.join(layout.files)}" for layout in LAYOUTS)
        left = ", ".join(_told(unused))
        others = f"; not used: {left}" if left else ""
        raise CheckpointError(f"{checkpoint} holds none of the known layouts ({known}){others}")
    if own:
        why = f"base weights; {own[0].name} is taken before them"
        unused |= {shown_files(checkpoint, files): why for files in bases}
    chosen = TransformerFiles(layout_of(found[0][0]), found[0])
    if brought_lora(chosen) is not None:
        unused.pop(BROUGHT, None)
    return replace(chosen, unused=tuple(_told(unused)))


def brought_lora(found: TransformerFiles) -> Path | None:
    """Return the LoRA that is part of a published model; None for most."""
    lora = found.files[0].with_name(BROUGHT)
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


def _files_of_their_own(folder: Path) -> tuple[list[Path], dict[str, str]]:
    """Return files that are a transformer, and what the others of the folder are."""
    found, others = [], {}
    known = {*SELF_FORCING.find_all(folder), *LONGLIVE.find_all(folder)}
    for path in sorted(folder.iterdir()):
        if path.suffix not in SUFFIXES or not path.is_file():
            continue
        if path.name.startswith(_STEM) or path.name == ORIGINAL_VAE or holds_fast_decoder(path):
            continue
        if path in known and not is_lora(path):
            found.append(path)  # whatever it turns out to be
        elif what := _what_else(path):
            others[path.name] = what
        else:
            found.append(path)
    return found, others


def _told(unused: Mapping[str, str]) -> list[str]:
    return [f"{name} ({what})" for name, what in unused.items()]


def _what_else(path: Path) -> str:
    """Say what a file is, if it is no transformer."""
    if is_lora(path):
        return "a LoRA: --lora NAME=PATH or --lora-merged PATH serves it"
    try:
        stored = SELF_FORCING.tensors((path,))
    except CheckpointError as error:
        return str(error)
    return "" if FIRST_WEIGHT in stored else "no Wan transformer"


def used(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Return files, those of folders included, each once and in order."""
    every = [p for path in paths for p in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    return tuple(dict.fromkeys(path for path in every if path.is_file()))
