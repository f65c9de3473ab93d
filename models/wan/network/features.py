"""What the Wan VAE remembers between two latent frames: plain values, known without its library.

A causal convolution keeps its last inputs. Every session has its own, and none of them is edited;
those whose slots have equal shapes can go through a network together, one row each.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

FeatureCache = tuple[Tensor | str | None, ...]
"""The last inputs of each causal convolution, [B, ...]; a text where a network left a mark."""

FIRST_GROUP, GROUP = 1, 4
"""Pictures that the first and every later latent frame of a video stand for."""


def joined(caches: Sequence[FeatureCache | None]) -> FeatureCache | None:
    """Return caches of equal `shape_key` as one, in their order; None where there is none yet."""
    first = caches[0]
    if first is None or len(caches) == 1:
        return first
    rows = [cache for cache in caches if cache is not None]
    assert len(rows) == len(caches), "videos that begin and videos that go on do not mix"
    return tuple(_joined_slot(slots) for slots in zip(*rows, strict=True))


def parted(cache: FeatureCache, rows: int) -> list[FeatureCache]:
    """Return one cache for each row; none keeps the memory of its neighbours alive."""
    if rows == 1:
        return [cache]
    return [
        tuple(slot[row : row + 1].clone() if isinstance(slot, Tensor) else slot for slot in cache)
        for row in range(rows)
    ]


def shape_key(cache: FeatureCache | None) -> tuple[int, ...]:
    """Return what must be equal for two caches of one network to be joined."""
    if cache is None:
        return ()
    return tuple(
        2 + slot.numel() if isinstance(slot, Tensor) else int(slot is None) for slot in cache
    )


def _joined_slot(slots: tuple[Tensor | str | None, ...]) -> Tensor | str | None:
    tensors = [slot for slot in slots if isinstance(slot, Tensor)]
    return torch.cat(tensors) if tensors else slots[0]
