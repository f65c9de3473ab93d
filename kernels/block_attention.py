"""Attention over a window of cache blocks, with backends chosen once when a model is loaded.

    attention = choose_block_attention("auto", device, dtype)
    mixed_BAQd = attention(q_BAQd, own, past)

A session's window is a row of block ids (the sink first, then the newest); one storage has the
blocks of all sessions. A query attends to its session's window and to the keys of the call itself
(`own`). `GatheredAttention` copies windows out of the storage and attends to the copy with a
backend of `attention.py`. The other backend, `block_attention_triton.py`, reads the blocks in place
and is imported only when it is chosen.

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
    """The blocks of each session's window in a batch.

    Attributes:
        blocks_BM: ids, int32, oldest first; entries after a row's last block are not read.
        lengths_B: tokens of each window, int32; the last block may be partly filled.
    """

    blocks_BM: Tensor
    lengths_B: Tensor

    @classmethod
    def of(
        cls, windows: Sequence[Sequence[int]], lengths: Sequence[int], device: torch.device
    ) -> "BlockTable":
        """Return a table of windows of different lengths.

        Args:
            windows: block ids of each session.
            lengths: filled tokens of each window.
        """
        width = max(1, *(len(window) for window in windows))
        rows = [[*window, *[0] * (width - len(window))] for window in windows]
        return cls(
            torch.tensor(rows, dtype=torch.int32, device=device),
            torch.tensor(list(lengths), dtype=torch.int32, device=device),
        )


@dataclass(frozen=True, slots=True)
class BlockWindow:
    """The windows of a batch in one layer: keys and values in place, and the table of blocks.

    Attributes:
        k_SNAd: keys of all blocks, with any strides: a view of a larger storage.
        v_SNAd: values of all blocks.
    """

    k_SNAd: Tensor
    v_SNAd: Tensor
    table: BlockTable


class BlockAttention(Protocol):
    """One backend."""

    def __call__(self, q_BAQd: Tensor, k_BAKd: Tensor, v_BAKd: Tensor, past: BlockWindow) -> Tensor:
        """Return the attention over the windows and the call's own keys, [B, A, Q, d]."""


@dataclass(frozen=True, slots=True)
class GatheredAttention:
    """Copies each window out of the storage, then attends to the copy and the own keys together."""

    attention: AttentionBackend = plain

    def __call__(self, q_BAQd: Tensor, k_BAKd: Tensor, v_BAKd: Tensor, past: BlockWindow) -> Tensor:
        """Attend session by session, because windows differ in length."""
        tokens = past.k_SNAd.shape[1]
        mixed = []
        for row, length in enumerate(past.table.lengths_B.tolist()):
            blocks = past.table.blocks_BM[row, : -(-length // tokens)]
            k, v = (
                torch.cat([_tokens(storage, blocks, length), own[row : row + 1]], dim=2)
                for storage, own in ((past.k_SNAd, k_BAKd), (past.v_SNAd, v_BAKd))
            )
            mixed.append(self.attention(q_BAQd[row : row + 1], k, v))
        return torch.cat(mixed)


def _tokens(storage_SNAd: Tensor, blocks: Tensor, length: int) -> Tensor:
    """Return the first `length` tokens of blocks, [1, A, length, d]."""
    tokens = storage_SNAd.index_select(0, blocks).flatten(0, 1)[:length]
    return tokens.transpose(0, 1)[None]


def choose_block_attention(name: str, device: torch.device, dtype: torch.dtype) -> BlockAttention:
    """Return a backend for a model on `device` in `dtype`.

    Args:
        name: `triton`, or a backend of `attention.py` that attends to a copy.

    Raises:
        UnknownBackendError: the backend is unknown, or cannot run here.
    """
    if name != TRITON:
        return GatheredAttention(choose_attention(name, device, dtype))
    if find_spec("triton") is None:
        raise UnknownBackendError(
            "triton is not installed: run pip install '.[gpu]' in a checkout of "
            "reverie (Linux only)"
        )
    kernel = importlib.import_module("reverie.kernels.block_attention_triton")
    if device.type != "cuda" and not kernel.INTERPRETED:
        raise UnknownBackendError(
            "triton needs a CUDA device, or TRITON_INTERPRET=1 to run in its interpreter"
        )
    return cast(BlockAttention, kernel.attend)


def block_backends() -> tuple[str, ...]:
    """Return the names that `choose_block_attention` knows."""
    return (AUTO, *BACKENDS, TRITON)
