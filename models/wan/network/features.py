"""The features that the Wan VAE keeps between two latent frames, as values of a session's state.

A causal convolution keeps its last inputs. Every session has its own, and they are never modified;
sessions whose features have equal shapes can share a call of the network, one row each.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

FeatureCache = tuple[Tensor | str | None, ...]
"""The last inputs of each causal convolution, [B, ...]; a text where a network left a mark."""

FIRST_GROUP, GROUP = 1, 4
"""How many pictures the first latent frame of a video encodes, and each later one."""


def stack_caches(caches: Sequence[FeatureCache | None]) -> FeatureCache | None:
    """Return caches of equal `shape_key` as one, in order; None where there is none yet."""
    first = caches[0]
    if first is None or len(caches) == 1:
        return first
    rows = [cache for cache in caches if cache is not None]
    assert len(rows) == len(caches), (
        "a batch has only videos that begin, or only videos that continue"
    )
    return tuple(_stack_slot(slots) for slots in zip(*rows, strict=True))


def split_caches(cache: FeatureCache, rows: int) -> list[FeatureCache]:
    """Return one cache for each row; none shares memory with the others."""
    if rows == 1:
        return [cache]
    return [
        tuple(slot[row : row + 1].clone() if isinstance(slot, Tensor) else slot for slot in cache)
        for row in range(rows)
    ]


def shape_key(cache: FeatureCache | None) -> tuple[int, ...]:
    """Return what must be equal for two caches of one network to be stacked."""
    if cache is None:
        return ()
    return tuple(
        2 + slot.numel() if isinstance(slot, Tensor) else int(slot is None) for slot in cache
    )


def _stack_slot(slots: tuple[Tensor | str | None, ...]) -> Tensor | str | None:
    tensors = [slot for slot in slots if isinstance(slot, Tensor)]
    return torch.cat(tensors) if tensors else slots[0]
