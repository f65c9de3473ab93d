"""Merges LoRAs into a model's weights, without rounding errors from earlier merges.

A merge cannot be undone exactly, so every merge starts from the original weights: kept copies of
the changed ones, or the checkpoint read again.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from reverie.models.contract.errors import CheckpointError
from reverie.models.services.lora import LoraFile


class MergedWeights:
    """The parameters of a model that LoRAs are merged into."""

    def __init__(self, root: nn.Module, base: Callable[[str], Tensor] | None = None) -> None:
        """Bind a model; `merge` changes it.

        Args:
            root: the model, with its original weights.
            base: reads the original weight of a linear layer by the layer's path, in any floating
                type. None keeps copies of the changed weights in host memory, as is always done for
                all other parameters.
        """
        self._root = root
        self._base = base
        self._kept: dict[str, Tensor] = {}
        self._changed: set[str] = set()

    @torch.no_grad()
    def merge(self, loras: Sequence[tuple[LoraFile, float]]) -> None:
        """Set the weights to the original ones with exactly these LoRAs.

        Each weight is summed in float32 and rounded once.

        Args:
            loras: files that fit, and their strengths; none restores the original weights.

        Raises:
            CheckpointError: a layer shares its weight with another module, which would change too;
                or a sum is not finite. Weights before it are changed then: load the model again.
        """
        changes: dict[str, list[Callable[[torch.device], Tensor]]] = {}
        for file, strength in loras:
            for path, pair in file.pairs.items():
                changes.setdefault(f"{path}.weight", []).append(partial(pair.change, strength))
            for name, addition in file.placed(self._root).items():
                changes.setdefault(name, []).append(partial(addition.change, strength))
        self._refuse_shared(changes)
        for name in sorted(changes.keys() | self._changed):
            parameter = self._root.get_parameter(name)
            total = self._true(name, parameter).to(parameter.device, torch.float32)
            for change in changes.get(name, ()):
                total = total + change(total.device)
            if not total.isfinite().all():
                path = name.removesuffix(".weight")
                raise CheckpointError(f"{path} is not finite after the merge")
            parameter.copy_(total)
        self._changed = set(changes)

    def _true(self, name: str, parameter: Tensor) -> Tensor:
        path, _, kind = name.rpartition(".")
        linear = isinstance(self._root.get_submodule(path), nn.Linear)
        if self._base is not None and linear and kind == "weight":
            return self._base(path)
        if name not in self._kept:
            self._kept[name] = parameter.detach().to("cpu", copy=True)
        return self._kept[name]

    def _refuse_shared(self, changed: Iterable[str]) -> None:
        wanted = set(changed)
        owners: dict[int, list[str]] = {}
        for name, parameter in self._root.named_parameters(remove_duplicate=False):
            owners.setdefault(id(parameter), []).append(name)
        for names in owners.values():
            shared = len(names) > 1 and [name for name in names if name in wanted]
            if shared:
                others = ", ".join(name for name in names if name != shared[0])
                raise CheckpointError(
                    f"cannot merge into {shared[0]}, which shares its weight with {others}"
                )
