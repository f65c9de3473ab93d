"""Checkpoints of a training run, written atomically."""

import os
from pathlib import Path
from typing import Any

import torch


def write_checkpoint(path: Path, content: dict[str, Any]) -> None:
    """Replace the checkpoint at `path` atomically; a kill while writing leaves the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        torch.save(content, file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def read_checkpoint(path: Path, device: torch.device) -> dict[str, Any]:
    """Load what `write_checkpoint` wrote; plain tensors, numbers and containers only."""
    content: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
    return content
