"""Finds the file of a LoRA, and assembles its tensors into pairs and additions."""

from collections.abc import Sequence
from pathlib import Path

from reverie.models.contract.errors import CheckpointError
from reverie.models.services.checkpoints import CheckpointManifest, read_config
from reverie.models.services.lora import LAYOUT, LoraAddition, LoraFile, LoraPair, Rename
from reverie.models.services.lora_content import (
    DIFFERENCE,
    DOWN,
    HALF,
    UP,
    LoraContent,
    sort_tensors,
)
from reverie.models.services.lora_settings import LoraSettings

CONFIG = "adapter_config.json"
FILES = ("adapter_model.safetensors", "adapter_model.bin")
PORTED = ("pytorch_lora_weights.safetensors", "pytorch_lora_weights.bin")
"""What diffusers saves, without a configuration file."""
PEFT = "base_model.model."
"""The prefix that peft adds to the names of the model that it wraps."""


_FILE = CheckpointManifest(
    LAYOUT,
    FILES,
    lambda name: name.removeprefix(PEFT),
    tops=("generator_lora", "state_dict", "lora"),
)


def is_lora(path: Path) -> bool:
    """Tell whether a path is an adapter, by its headers."""
    if path.is_dir():
        ported = any((path / name).is_file() for name in PORTED)
        model = any((path / name).exists() for name in ("config.json", "transformer"))
        return (path / CONFIG).is_file() or (ported and not model)
    if not path.is_file():
        return False
    try:
        names = _FILE.tensors((path,))
    except CheckpointError:
        return False
    return any(HALF.match(name) or DIFFERENCE.match(name) for name in names)


def read_lora(
    path: Path, rename: Rename = lambda name: name, adapter: str | None = None
) -> LoraFile:
    """Read the headers of an adapter.

    Args:
        path: a folder as peft or diffusers writes it, or a file.
        rename: from a public weight name to the model's own.
        adapter: the name of one adapter, for a file with several.

    Raises:
        CheckpointError: it cannot be read, is not a LoRA, or has several and none of that name.
    """
    weights, settings = _found(path)
    content = sort_tensors(weights, _FILE.tensors((weights,)))
    if not (content.halves or content.differences):
        raise CheckpointError(f"{path} is not a LoRA: it has no lora_A and lora_B tensors")
    taken = content.chosen(adapter)
    return _assembled(settings, content, taken, rename)


def _assembled(
    settings: LoraSettings, content: LoraContent, taken: str, rename: Rename
) -> LoraFile:
    pairs: dict[str, LoraPair] = {}
    missing, ranks, additions = [], [], []
    for module, found in content.halves.get(taken, {}).items():
        if len(found) < 2:
            missing.append(f"{module}.lora_{'B' if DOWN in found else 'A'}")
            continue
        down, up = found[DOWN], found[UP]
        rank = down.shape[0] if down.shape else 0
        wanted = settings.rank_of(module)
        if wanted is not None and rank != wanted:
            ranks.append(f"{module} has rank {rank}, not {wanted}")
        own = rename(f"{module}.weight").removesuffix(".weight")
        if own in pairs:
            raise CheckpointError(f"{content.weights}: two pairs for the same layer, {own}")
        scale = settings.scale(module, max(1, rank), content.alphas.get(module))
        pairs[own] = LoraPair(down, up, scale)
        if (bias := content.biases.get((taken, module))) is not None:
            name = f"{module}.lora_B.bias"
            additions.append(LoraAddition(name, (f"{own}.bias",), bias, scale))
    for (module, kind), difference in content.differences.items():
        own = rename(f"{module}.weight").removesuffix(".weight")
        names = (f"{own}.bias",) if kind == "diff_b" else (f"{own}.weight", own, rename(module))
        additions.append(LoraAddition(f"{module}.{kind}", names, difference))
    _refuse_duplicates(content.weights, additions)
    known = content.halves.get(taken, {}).keys()
    odd = [*content.odd, *(f"{module}.alpha" for module in content.alphas.keys() - known)]
    odd += [f"{m}.lora_B.bias" for a, m in content.biases if a == taken and m not in known]
    return LoraFile(
        weights=content.weights,
        settings=settings,
        pairs=pairs,
        odd=tuple(sorted(odd)),
        halves=tuple(missing),
        ranks=tuple(ranks),
        additions=tuple(additions),
        adapter=taken if len(content.halves) > 1 else "",
    )


def _refuse_duplicates(weights: Path, additions: Sequence[LoraAddition]) -> None:
    first: dict[str, str] = {}
    for addition in additions:
        other = first.setdefault(addition.names[0], addition.name)
        if other != addition.name:
            raise CheckpointError(
                f"{weights}: {other} and {addition.name} change the same parameter, "
                f"{addition.names[0]}"
            )


def _found(path: Path) -> tuple[Path, LoraSettings]:
    """Return the file with the tensors, and their scales."""
    if path.is_dir():
        weights = _file_in(path)
    elif path.is_file():
        weights = path
    else:
        raise CheckpointError(f"{path}: no such file or folder")
    config = weights.with_name(CONFIG)
    if weights.name in FILES and config.is_file():
        return weights, LoraSettings.from_peft(read_config(config), config)
    return weights, LoraSettings.written_inside(weights)


def _file_in(folder: Path) -> Path:
    peft, ported = (
        next((folder / name for name in names if (folder / name).is_file()), None)
        for names in (FILES, PORTED)
    )
    if peft is not None and ported is not None:
        raise CheckpointError(
            f"{folder} contains 2 LoRAs, {peft.name} and {ported.name}: name one of the files"
        )
    if ported is not None:
        return ported
    if peft is None or not (folder / CONFIG).is_file():
        known = f"{CONFIG} with {' or '.join(FILES)}, or {' or '.join(PORTED)}"
        raise CheckpointError(f"{folder} contains no LoRA: expected {known}")
    return peft
