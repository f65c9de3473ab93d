"""LoRA files: what is in them, whether they fit a model, and reading them pair by pair.

A LoRA adds `scale * B A x` to what a linear layer makes of x (Hu et al. 2021, arXiv:2106.09685).
Read are folders as peft writes them (`adapter_config.json` beside the tensors) and single files,
safetensors or torch, with or without a dictionary around the tensors. Only headers are looked at
until somebody asks for a tensor, except for the hash that names the content.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import torch
from torch import Tensor, nn

from reverie.models.checkpoints import (
    CheckpointManifest,
    CheckpointReport,
    StoredTensor,
    read_config,
)
from reverie.models.errors import CheckpointError
from reverie.models.lora_settings import LoraSettings, finite

CONFIG = "adapter_config.json"
FILES = ("adapter_model.safetensors", "adapter_model.bin")
LAYOUT = "LoRA"
PEFT = "base_model.model."
"""What peft puts in front of the names of the model that it has wrapped."""

_HALF = re.compile(r"^(?P<module>.+)\.lora_(?P<half>A|B|down|up)(?:\.[^.]+)?\.weight$")
_ALPHA = re.compile(r"^(?P<module>.+)\.alpha$")
_HALVES = {"A": "down", "B": "up", "down": "down", "up": "up"}
_FLOATS = ("F16", "BF16", "F32", "F64", "float16", "bfloat16", "float32", "float64")
Rename = Callable[[str], str]
"""From the public name of a weight to the model's own."""


@dataclass(frozen=True, slots=True)
class LoraPair:
    """What is added to one linear layer.

    Attributes:
        down: A, [rank, features in].
        up: B, [features out, rank].
        scale: what their product is multiplied with at strength 1.
    """

    down: StoredTensor
    up: StoredTensor
    scale: float

    def change(self, strength: float, device: torch.device | None = None) -> Tensor:
        """Return what a weight grows by, [features out, features in], float32.

        Args:
            strength: 1 is as it was trained.
            device: where to compute it; None: where it was read to.
        """
        up, down = (half.read().to(device, torch.float32) for half in (self.up, self.down))
        return (up @ down) * (self.scale * strength)


@dataclass(frozen=True)
class LoraFile:
    """One adapter, looked at and not read yet.

    Attributes:
        weights: the file with the tensors.
        pairs: by the path of the linear layer that they are for.
        odd: names of tensors that are no half of a pair.
        halves: names of halves that the file should have and does not.
        ranks: a line for each pair whose rank is not the one that the configuration says.
    """

    weights: Path
    settings: LoraSettings
    pairs: Mapping[str, LoraPair]
    odd: tuple[str, ...] = ()
    halves: tuple[str, ...] = ()
    ranks: tuple[str, ...] = ()

    @cached_property
    def version(self) -> str:
        """A hash of the content: of the tensors' file, and of what scales them."""
        digest = blake2b(repr(self.settings).encode(), digest_size=8)
        try:
            with self.weights.open("rb") as file:
                while piece := file.read(1 << 20):
                    digest.update(piece)
        except OSError as error:
            raise CheckpointError(f"cannot read {self.weights}: {error}") from error
        return digest.hexdigest()

    def inspect(self, model: nn.Module) -> CheckpointReport:
        """Compare with a model, which may be on device `meta`."""
        modules = dict(model.named_modules())
        unmatched, misshapen, matched = list(self.odd), list(self.ranks), 0
        for path, pair in sorted(self.pairs.items()):
            module = modules.get(path)
            if not isinstance(module, nn.Linear):
                unmatched.append(path if module is None else f"{path} (no linear layer)")
                continue
            wrong = list(_misfits(path, pair, module))
            misshapen += wrong
            matched += 2 - len(wrong)
        return CheckpointReport(
            layout=LAYOUT,
            matched=matched,
            unmatched=tuple(unmatched),
            missing=self.halves,
            misshapen=tuple(misshapen),
            dtypes=Counter(half.dtype for pair in self.pairs.values() for half in _halves(pair)),
        )


def is_lora(path: Path) -> bool:
    """Tell whether a path is an adapter, by its headers."""
    if path.is_dir():
        return (path / CONFIG).is_file()
    if not path.is_file():
        return False
    try:
        return any(_HALF.match(name) for name in _FILE.tensors((path,)))
    except CheckpointError:
        return False


def read_lora(path: Path, rename: Rename = lambda name: name) -> LoraFile:
    """Look at an adapter.

    Args:
        path: a folder of peft's, or a file.
        rename: from a public weight name to the model's own.

    Raises:
        CheckpointError: it cannot be read, or is no LoRA.
    """
    weights, settings = _found(path)
    stored = _FILE.tensors((weights,))
    halves: dict[str, dict[str, StoredTensor]] = {}
    alphas: dict[str, float] = {}
    odd = []
    for name, tensor in stored.items():
        if match := _HALF.match(name):
            halves.setdefault(match["module"], {})[_HALVES[match["half"]]] = tensor
        elif (match := _ALPHA.match(name)) and math.prod(tensor.shape) == 1:
            try:
                alphas[match["module"]] = finite(name, float(tensor.read()))
            except ValueError as error:
                raise CheckpointError(f"{weights}: {error}") from error
        else:
            odd.append(name)
    if not halves:
        raise CheckpointError(f"{path} is no LoRA: none of its tensors is half of a pair")
    return _assembled(weights, settings, halves, alphas, odd, rename)


def _assembled(
    weights: Path,
    settings: LoraSettings,
    halves: Mapping[str, Mapping[str, StoredTensor]],
    alphas: Mapping[str, float],
    odd: list[str],
    rename: Rename,
) -> LoraFile:
    pairs: dict[str, LoraPair] = {}
    missing, ranks = [], []
    for module, found in halves.items():
        if len(found) < 2:
            missing.append(f"{module}.lora_{'B' if 'down' in found else 'A'}")
            continue
        down, up = found["down"], found["up"]
        rank = down.shape[0] if down.shape else 0
        wanted = settings.rank_of(module)
        if wanted is not None and rank != wanted:
            ranks.append(f"{module} has rank {rank}, not {wanted}")
        own = rename(f"{module}.weight").removesuffix(".weight")
        if own in pairs:
            raise CheckpointError(f"{weights}: two pairs are for {own}")
        pairs[own] = LoraPair(down, up, settings.scale(module, max(1, rank), alphas.get(module)))
    odd += [f"{module}.alpha" for module in alphas.keys() - halves.keys()]
    return LoraFile(weights, settings, pairs, tuple(sorted(odd)), tuple(missing), tuple(ranks))


def _found(path: Path) -> tuple[Path, LoraSettings]:
    """Return the file with the tensors, and what scales them."""
    if path.is_dir():
        weights = next((path / name for name in FILES if (path / name).is_file()), None)
        if weights is None or not (path / CONFIG).is_file():
            raise CheckpointError(f"{path} holds no LoRA: {CONFIG} with {' or '.join(FILES)}")
    elif path.is_file():
        weights = path
    else:
        raise CheckpointError(f"{path}: no such file or folder")
    config = weights.with_name(CONFIG)
    if weights.name in FILES and config.is_file():
        return weights, LoraSettings.from_peft(read_config(config), config)
    return weights, LoraSettings.written_inside(weights)


def _misfits(path: str, pair: LoraPair, layer: nn.Linear) -> Iterator[str]:
    rank = pair.down.shape[0] if pair.down.shape else 0
    wanted = {"lora_A": (rank, layer.in_features), "lora_B": (layer.out_features, rank)}
    for (half, shape), stored in zip(wanted.items(), _halves(pair), strict=True):
        if stored.shape != shape:
            yield f"{path}.{half} is {list(stored.shape)}, not {list(shape)}"
        elif stored.dtype not in _FLOATS:
            yield f"{path}.{half} is {stored.dtype}, not a floating type"


def _halves(pair: LoraPair) -> tuple[StoredTensor, StoredTensor]:
    return pair.down, pair.up


_FILE = CheckpointManifest(
    LAYOUT,
    FILES,
    lambda name: name.removeprefix(PEFT),
    tops=("generator_lora", "state_dict", "lora"),
)
