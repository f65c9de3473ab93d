"""LoRAs as part of a model's weights, without rounding traces of those that were there before.

What is merged can never be taken out again exactly, so every choice starts from the true weights:
kept copies of those that were changed, or the checkpoint read anew, as the operator likes.
"""

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor, nn

from reverie.models.errors import CheckpointError
from reverie.models.lora import LoraFile


class MergedWeights:
    """The linear layers of a model that LoRAs are merged into."""

    def __init__(self, root: nn.Module, base: Callable[[str], Tensor] | None = None) -> None:
        """Change nothing yet.

        Args:
            root: the model, with its true weights.
            base: reads the true weight of a layer by the layer's path, in any floating type. None
                keeps copies, in the memory of the host, of the weights that are changed.
        """
        self._root = root
        self._base = base
        self._kept: dict[str, Tensor] = {}
        self._changed: set[str] = set()

    @torch.no_grad()
    def merge(self, loras: Sequence[tuple[LoraFile, float]]) -> None:
        """Make the weights those of the model with these LoRAs, and with no others.

        Each weight is summed up in float32 and rounded once.

        Args:
            loras: files that fit, and their strengths; none takes the true weights back.

        Raises:
            CheckpointError: a layer shares its weight with another module, which would change too;
                or a sum is not finite. Weights before it are changed then: load the model anew.
        """
        paths = {path for file, _ in loras for path in file.pairs}
        self._refuse_shared(paths)
        for path in sorted(paths | self._changed):
            layer = self._root.get_submodule(path)
            assert isinstance(layer, nn.Linear), f"{path} was found to be a linear layer"
            total = self._true(path, layer).to(layer.weight.device, torch.float32)
            for file, strength in loras:
                if path in file.pairs:
                    total = total + file.pairs[path].change(strength, total.device)
            if not total.isfinite().all():
                raise CheckpointError(f"{path} with what is merged into it is not finite")
            layer.weight.copy_(total)
        self._changed = paths

    def _true(self, path: str, layer: nn.Linear) -> Tensor:
        if self._base is not None:
            return self._base(path)
        if path not in self._kept:
            self._kept[path] = layer.weight.detach().to("cpu", copy=True)
        return self._kept[path]

    def _refuse_shared(self, paths: Iterable[str]) -> None:
        owners: dict[int, list[str]] = {}
        for name, parameter in self._root.named_parameters(remove_duplicate=False):
            owners.setdefault(id(parameter), []).append(name)
        for names in owners.values():
            shared = len(names) > 1 and [n for n in names if n.removesuffix(".weight") in paths]
            if shared:
                others = ", ".join(name for name in names if name != shared[0])
                raise CheckpointError(f"cannot merge into {shared[0]}, which is also {others}")
