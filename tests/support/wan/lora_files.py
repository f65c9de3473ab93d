"""LoRA files for tests, as public tools write them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

Pairs = dict[str, tuple[Tensor, Tensor]]
"""A [rank, in] and B [out, rank] by the path of their layer."""


def linear(model: nn.Module, path: str) -> nn.Linear:
    layer = model.get_submodule(path)
    assert isinstance(layer, nn.Linear)
    return layer


def pairs_for(model: nn.Module, paths: Sequence[str], seed: int, rank: int = 2) -> Pairs:
    """Return random pairs for linear layers."""
    random = torch.Generator().manual_seed(seed)
    found: Pairs = {}
    for path in paths:
        layer = linear(model, path)
        down = torch.randn(rank, layer.in_features, generator=random) * 0.3
        found[path] = down, torch.randn(layer.out_features, rank, generator=random) * 0.3
    return found


def tensors_of(pairs: Pairs, prefix: str = "base_model.model.") -> dict[str, Tensor]:
    """Name pairs as peft does."""
    named = {}
    for path, (down, up) in pairs.items():
        named[f"{prefix}{path}.lora_A.weight"] = down
        named[f"{prefix}{path}.lora_B.weight"] = up
    return named


def write_peft(folder: Path, pairs: Pairs, settings: Mapping[str, Any] | None = None) -> Path:
    """Write a folder as peft does; alpha is twice the rank unless `settings` say otherwise."""
    folder.mkdir(parents=True, exist_ok=True)
    rank = next(iter(pairs.values()))[0].shape[0]
    config = {"peft_type": "LORA", "r": rank, "lora_alpha": 2 * rank, **(settings or {})}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    save_file(tensors_of(pairs), folder / "adapter_model.safetensors")
    return folder
