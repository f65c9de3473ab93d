"""The tensors of a LoRA file, sorted by the names that public tools give them.

A file may contain several adapters, whose names are part of the names of their tensors. They are
kept apart here: a mix of their tensors would be an adapter that was never trained.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reverie.models.contract.errors import CheckpointError
from reverie.models.services.checkpoints import StoredTensor
from reverie.models.services.lora_settings import finite

DOWN, UP = "down", "up"

HALF = re.compile(
    r"^(?P<module>.+)\.lora_(?P<half>A|B|down|up)(?:\.(?P<adapter>[^.]+))?\.(?P<kind>weight|bias)$"
)
DIFFERENCE = re.compile(r"^(?P<module>.+)\.(?P<kind>diff|diff_b)$")
_ALPHA = re.compile(r"^(?P<module>.+)\.alpha$")
_HALVES = {"A": DOWN, "B": UP, "down": DOWN, "up": UP}


@dataclass(slots=True)
class LoraContent:
    """The content of a file, under the public names.

    Attributes:
        halves: by adapter, module and half.
        biases: of the second half, by adapter and module.
        differences: by module and kind.
        alphas: by module.
        odd: names of all other tensors.
    """

    weights: Path
    halves: dict[str, dict[str, dict[str, StoredTensor]]] = field(default_factory=dict)
    biases: dict[tuple[str, str], StoredTensor] = field(default_factory=dict)
    differences: dict[tuple[str, str], StoredTensor] = field(default_factory=dict)
    alphas: dict[str, float] = field(default_factory=dict)
    odd: list[str] = field(default_factory=list)

    def chosen(self, adapter: str | None) -> str:
        """Return the name of the adapter to use.

        Raises:
            CheckpointError: there are several, and none has the name `adapter`.
        """
        if len(self.halves) < 2:
            return next(iter(self.halves), "")
        if adapter is not None and adapter in self.halves:
            return adapter
        names = sorted(self.halves)
        told = " and ".join(name or "one without a name" for name in names)
        named = next(name for name in names if name)
        raise CheckpointError(
            f"{self.weights} contains {len(names)} adapters, {told}: choose one by its name, such "
            f"as --lora {named}={self.weights}"
        )


def sort_tensors(weights: Path, stored: Mapping[str, StoredTensor]) -> LoraContent:
    """Sort the tensors of a file by adapter, layer and kind.

    Raises:
        CheckpointError: a half occurs twice, or a scale is not a number.
    """
    content = LoraContent(weights)
    full_names: dict[tuple[str, str, str], str] = {}
    for name, tensor in stored.items():
        if match := HALF.match(name):
            adapter, module = match["adapter"] or "", match["module"]
            half = _HALVES[match["half"]]
            if match["kind"] == "bias":
                if half == UP:
                    content.biases[adapter, module] = tensor
                else:
                    content.odd.append(name)
                continue
            if (other := full_names.setdefault((adapter, module, half), name)) != name:
                raise CheckpointError(f"{weights}: {other} and {name} are the same half of a pair")
            content.halves.setdefault(adapter, {}).setdefault(module, {})[half] = tensor
        elif match := DIFFERENCE.match(name):
            content.differences[match["module"], match["kind"]] = tensor
        elif (match := _ALPHA.match(name)) and math.prod(tensor.shape) == 1:
            try:
                content.alphas[match["module"]] = finite(name, float(tensor.read()))
            except ValueError as error:
                raise CheckpointError(f"{weights}: {error}") from error
        else:
            content.odd.append(name)
    return content
