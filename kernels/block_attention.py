"""Attention over a window of cache blocks: backends chosen once, when a model is loaded.

    attention = choose_block_attention("auto", device, dtype)
    mixed_BAQd = attention(q_BAQd, own, past)

A session's window is a row of block ids (the sink first, then the newest), and the blocks lie in
one storage for all sessions. What a query sees is its session's window and then the keys of the
call itself (`own`). `GatheredAttention` copies windows out of the storage and attends to the copy
with a backend of `attention.py`; the other backend, `block_attention_triton.py`, reads the blocks
where they are and is imported only when it is chosen.

Shapes: B sessions, A heads, Q queries, K own keys, d channels of a head, S blocks of N tokens in
the storage, M blocks of the longest window.
"""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Protocol, cast

import torch
from torch import Tensor

from reverie.kernels.attention import (
    AUTO,
    BACKENDS,
    AttentionBackend,
    UnknownBackendError,
    choose_attention,
    plain,
)

TRITON = "triton"


@dataclass(frozen=True, slots=True)
class BlockTable:
    """Which blocks each session of a batch looks back on.

    Attributes:
        blocks_BM: ids, int32, oldest first; what stands behind a row's last block is not read.
        lengths_B: tokens of each window, int32; its last block may be filled in part.
    """

    blocks_BM: Tensor
    lengths_B: Tensor

    @classmethod
    def of(
        cls, windows: Sequence[Sequence[int]], lengths: Sequence[int], device: torch.device
    ) -> "BlockTable":
        """Lay windows of different lengths out as a table.

        Args:
            windows: block ids of each session.
            lengths: tokens of each that are filled.
        """
        width = max(1, *(len(window) for window in windows))
        rows = [[*window, *[0] * (width - len(window))] for window in windows]
        return cls(
            torch.tensor(rows, dtype=torch.int32, device=device),
            torch.tensor(list(lengths), dtype=torch.int32, device=device),
        )


@dataclass(frozen=True, slots=True)
class BlockWindow:
    """The windows of a batch in one layer: keys and values where they lie, and who sees which.

    Attributes:
        k_SNAd: keys of all blocks; any strides, so that a view of a larger storage will do.
        v_SNAd: their values.
    """

    k_SNAd: Tensor
    v_SNAd: Tensor
    table: BlockTable


class BlockAttention(Protocol):
    """One backend."""

    def __call__(self, q_BAQd: Tensor, k_BAKd: Tensor, v_BAKd: Tensor, past: BlockWindow) -> Tensor:
        """Return what the queries see of the windows and of the call's own keys, [B, A, Q, d]."""


@dataclass(frozen=True, slots=True)
class GatheredAttention:
    """Copies each window out of the storage, then attends to it and the own keys as one."""

    attention: AttentionBackend = plain

    def __call__(self, q_BAQd: Tensor, k_BAKd: Tensor, v_BAKd: Tensor, past: BlockWindow) -> Tensor:
        """Attend, session by session: their windows differ in length."""
        tokens = past.k_SNAd.shape[1]
        mixed = []
        for row, length in enumerate(past.table.lengths_B.tolist()):
            blocks = past.table.blocks_BM[row, : -(-length // tokens)]
            k, v = (
                torch.cat([_laid(storage, blocks, length), own[row : row + 1]], dim=2)
                for storage, own in ((past.k_SNAd, k_BAKd), (past.v_SNAd, v_BAKd))
            )
            mixed.append(self.attention(q_BAQd[row : row + 1], k, v))
        return torch.cat(mixed)


def _laid(storage_SNAd: Tensor, blocks: Tensor, length: int) -> Tensor:
    """Return the first `length` tokens of blocks, [1, A, length, d]."""
    tokens = storage_SNAd.index_select(0, blocks).flatten(0, 1)[:length]
    return tokens.transpose(0, 1)[None]


def choose_block_attention(name: str, device: torch.device, dtype: torch.dtype) -> BlockAttention:
    """Return a backend for a model on `device` in `dtype`.

    Args:
        name: `triton`, or a backend of `attention.py`, which then attends to a copy.

    Raises:
        UnknownBackendError: it does not exist, or cannot run here.
    """
    if name != TRITON:
        return GatheredAttention(choose_attention(name, device, dtype))
    if find_spec("triton") is None:
        raise UnknownBackendError(
            "triton is not installed: pip install '.[gpu]' in a checkout of reverie (Linux only)"
        )
    kernel = importlib.import_module("reverie.kernels.block_attention_triton")
    if device.type != "cuda" and not kernel.INTERPRETED:
        raise UnknownBackendError("triton needs a CUDA device, or TRITON_INTERPRET=1 to try it")
    return cast(BlockAttention, kernel.attend)


def block_backends() -> tuple[str, ...]:
    """Return the names that `choose_block_attention` knows."""
    return (AUTO, *BACKENDS, TRITON)
