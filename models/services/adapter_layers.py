"""What an adapter adds to the output of a layer, whose own weights stay unchanged."""

from collections import OrderedDict
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from reverie.models.contract.errors import CheckpointError
from reverie.models.services.lora import LoraAddition, LoraPair


@dataclass(frozen=True, slots=True)
class PlacedPair:
    """A LoRA pair on the device of its layer, in the layer's type."""

    down: Tensor
    up: Tensor
    scale: float

    @classmethod
    def of(cls, pair: LoraPair, layer: nn.Linear) -> "PlacedPair":
        """Read a pair for a layer.

        Raises:
            CheckpointError: it has values that are not finite in the layer's type.
        """
        weight = layer.weight
        down, up = (half.read().to(weight.device, weight.dtype) for half in (pair.down, pair.up))
        if not (down.isfinite().all() and up.isfinite().all()):
            raise CheckpointError("it has values that are not finite")
        return cls(down, up, pair.scale)

    def change(self, x: Tensor, strength: float) -> Tensor:
        """Return the change of the layer's output."""
        low = functional.linear(x, self.down)
        return functional.linear(low, self.up) * (self.scale * strength)


@dataclass(frozen=True, slots=True)
class PlacedAddition:
    """Changes of whole parameters of one layer, on the layer's device.

    The layer must be affine in its parameters, as linear layers, convolutions and norms are: then
    its output with the differences as parameters, minus its output with zeros, is the change.

    Attributes:
        grown: the layer with the differences in place of its parameters.
        blank: the layer with zeros; None for a linear layer, whose output is then 0.
    """

    grown: nn.Module
    blank: nn.Module | None

    @classmethod
    def of(cls, layer: nn.Module, additions: Mapping[str, LoraAddition]) -> "PlacedAddition":
        """Read additions by the names that the layer gives its parameters.

        Raises:
            CheckpointError: one can only be merged, or is not finite in the layer's type.
        """
        own = dict(layer.named_parameters(recurse=False))
        if any(layer.children()) or not own.keys() <= {"weight", "bias"}:
            names = ", ".join(addition.name for addition in additions.values())
            raise CheckpointError(f"{names} can only be merged (--lora-merged PATH)")
        grown = {name: torch.zeros_like(parameter) for name, parameter in own.items()}
        for name, addition in additions.items():
            change = addition.change(1.0, own[name].device).to(own[name].dtype)
            if not change.isfinite().all():
                raise CheckpointError(f"{addition.name} has values that are not finite")
            grown[name] = change
        linear = isinstance(layer, nn.Linear)
        if linear and "weight" not in additions:
            return cls(_Shift(grown["bias"]), None)
        blank = None if linear else {n: torch.zeros_like(p) for n, p in own.items()}
        return cls(_twin(layer, grown), None if blank is None else _twin(layer, blank))

    def change(self, x: Tensor, strength: float) -> Tensor:
        """Return the change of the layer's output."""
        change: Tensor = self.grown(x)
        if self.blank is not None:
            change = change - self.blank(x)
        return change * strength


class _Shift(nn.Module):
    """A linear layer of which only the bias changes: a constant output."""

    def __init__(self, bias: Tensor) -> None:
        super().__init__()
        self.bias = nn.Parameter(bias, requires_grad=False)

    def forward(self, _: Tensor) -> Tensor:
        """Return the bias."""
        return self.bias


def _twin(layer: nn.Module, parameters: Mapping[str, Tensor]) -> nn.Module:
    """Return a layer of the same kind with other parameters, and without hooks."""
    twin = copy(layer)
    twin._parameters = {n: nn.Parameter(p, requires_grad=False) for n, p in parameters.items()}
    twin._forward_hooks = OrderedDict()
    return twin
