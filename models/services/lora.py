"""LoRAs: their pairs and additions, whether these fit a model, and reading them one by one.

A LoRA adds `scale * B A x` to the output of a linear layer for x (Hu et al. 2021,
arXiv:2106.09685). Folders as peft (`adapter_config.json` next to the tensors) and diffusers write
them are supported, and single files, safetensors or torch, with or without a dictionary around the
tensors. A file may also add to whole parameters (`.diff`, `.diff_b`), as those that shorten
sampling do. Only headers are read until a tensor is needed, except for the hash that identifies the
content.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import torch
from torch import Tensor, nn

from reverie.models.contract.errors import CheckpointError
from reverie.models.number_types import type_faults
from reverie.models.services.checkpoint_report import CheckpointReport
from reverie.models.services.checkpoints import StoredTensor
from reverie.models.services.lora_settings import LoraSettings

LAYOUT = "LoRA"
_FLOATS = ("F16", "BF16", "F32", "F64", "float16", "bfloat16", "float32", "float64")
Rename = Callable[[str], str]
"""From the public name of a weight to the model's own."""


@dataclass(frozen=True, slots=True)
class LoraPair:
    """The low-rank change of one linear layer.

    Attributes:
        down: A, [rank, features in].
        up: B, [features out, rank].
        scale: factor of their product at strength 1.
    """

    down: StoredTensor
    up: StoredTensor
    scale: float

    def change(self, strength: float, device: torch.device | None = None) -> Tensor:
        """Return the change of the weight, [features out, features in], float32.

        Args:
            strength: 1 is as trained.
            device: where to compute it; None: where the tensors are.
        """
        up, down = (half.read().to(device, torch.float32) for half in (self.up, self.down))
        return (up @ down) * (self.scale * strength)


@dataclass(frozen=True, slots=True)
class LoraAddition:
    """The change of one whole parameter: the difference of two trainings.

    Attributes:
        name: in the file.
        names: possible names of the parameter here, likeliest first.
    """

    name: str
    names: tuple[str, ...]
    difference: StoredTensor
    scale: float = 1.0

    def change(self, strength: float, device: torch.device | None = None) -> Tensor:
        """Return the change of the parameter, float32; see `LoraPair.change`."""
        return self.difference.read().to(device, torch.float32) * (self.scale * strength)


@dataclass(frozen=True)
class LoraFile:
    """One adapter, whose tensors are read on demand.

    Attributes:
        weights: the file with the tensors.
        pairs: by the path of their linear layer.
        additions: to parameters of any kind.
        odd: names of tensors that are neither.
        halves: names of halves that the file lacks.
        ranks: a line for each pair whose rank differs from the configuration.
        adapter: its name in a file with several; empty for the only one.
    """

    weights: Path
    settings: LoraSettings
    pairs: Mapping[str, LoraPair]
    odd: tuple[str, ...] = ()
    halves: tuple[str, ...] = ()
    ranks: tuple[str, ...] = ()
    additions: tuple[LoraAddition, ...] = ()
    adapter: str = ""

    @cached_property
    def version(self) -> str:
        """A hash of the content: of the tensors' file and of the scales."""
        digest = blake2b(f"{self.settings!r}{self.adapter}".encode(), digest_size=8)
        try:
            with self.weights.open("rb") as file:
                while piece := file.read(1 << 20):
                    digest.update(piece)
        except OSError as error:
            raise CheckpointError(f"cannot read {self.weights}: {error}") from error
        return digest.hexdigest()

    @property
    def components(self) -> frozenset[str]:
        """The components of a model that it changes: the first parts of the names."""
        names = (*self.pairs, *(addition.names[0] for addition in self.additions))
        return frozenset(name.partition(".")[0] for name in names)

    def placed(self, model: nn.Module) -> dict[str, LoraAddition]:
        """Return additions by the names of their parameters, as far as a model has them."""
        known = dict(model.named_parameters(remove_duplicate=False))
        found = {}
        for addition in self.additions:
            own = next((name for name in addition.names if name in known), None)
            if own is not None:
                found[own] = addition
        return found

    def inspect(self, model: nn.Module) -> CheckpointReport:
        """Compare with a model, which may be on device `meta`."""
        modules = dict(model.named_modules())
        unmatched, misshapen, matched = list(self.odd), list(self.ranks), 0
        for path, pair in sorted(self.pairs.items()):
            module = modules.get(path)
            if not isinstance(module, nn.Linear):
                unmatched.append(path if module is None else f"{path} (not a linear layer)")
                continue
            wrong = list(_misfits(path, pair, module))
            misshapen += wrong
            matched += 2 - len(wrong)
        placed = self.placed(model)
        there = {addition.name for addition in placed.values()}
        unmatched += [a.names[0] for a in self.additions if a.name not in there]
        for name, addition in sorted(placed.items()):
            wrong = list(_misfit(addition.name, addition.difference, model.get_parameter(name)))
            misshapen += wrong
            matched += 1 - len(wrong)
        stored = [half for pair in self.pairs.values() for half in _halves(pair)]
        stored += [addition.difference for addition in self.additions]
        return CheckpointReport(
            layout=LAYOUT,
            matched=matched,
            unmatched=tuple(unmatched),
            missing=self.halves,
            misshapen=tuple(misshapen),
            dtypes=Counter(tensor.dtype for tensor in stored),
            faults=type_faults(self._types()),
        )

    def _types(self) -> dict[str, str]:
        """Return the types of all halves and additions, by the names of their parameters."""
        types = {addition.name: addition.difference.dtype for addition in self.additions}
        for path, pair in self.pairs.items():
            types |= {f"{path} (down)": pair.down.dtype, f"{path} (up)": pair.up.dtype}
        return types


def _misfit(name: str, stored: StoredTensor, parameter: Tensor) -> Iterator[str]:
    if stored.shape != tuple(parameter.shape):
        yield f"{name} is {list(stored.shape)}, not {list(parameter.shape)}"
    elif stored.dtype not in _FLOATS:
        yield f"{name} is {stored.dtype}, not a floating type"


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
