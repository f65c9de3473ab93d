"""The windows of several sessions, read at once and used by row.

The window is read once a block. Each session's state keeps its row of the result, so that nothing
is copied again while the same sessions form a batch. With attention in place nothing is copied at
all, and a row is the ids of cache blocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from reverie.kernels.block_attention import BlockTable, BlockWindow
from reverie.models.contract.blocks import BlockId, BlockPool
from reverie.models.wan.network.block import KeysAndValues, LayerPast
from reverie.models.wan.network.transformer import layers_of

Layers = tuple[KeysAndValues, ...]
"""For each layer the keys and values of some frames, oldest first."""


@dataclass(frozen=True, slots=True)
class ContextRow:
    """One session's row of windows that were read together."""

    layers: Layers
    row: int


@dataclass(frozen=True, slots=True)
class ContextBlocks:
    """One session's cache blocks, to be read in place; the state refers to them."""

    blocks: tuple[BlockId, ...]


Past = ContextRow | ContextBlocks


def read_rows(
    pool: BlockPool, windows: Sequence[tuple[BlockId, ...]]
) -> list[ContextRow] | list[None]:
    """Return copies of windows of equal length; None where they are empty."""
    if not windows or not windows[0]:
        return [None] * len(windows)
    frames = len(windows[0])
    blocks = tuple(block for window in windows for block in window)
    layers = layers_of(pool.gather(blocks).view(len(windows), frames, *pool.view(blocks[0]).shape))
    return [ContextRow(layers, row) for row in range(len(windows))]


def left_in_place(windows: Sequence[tuple[BlockId, ...]]) -> Sequence[ContextBlocks | None]:
    """Return windows for attention in place; None where they are empty."""
    return [ContextBlocks(window) if window else None for window in windows]


def seen_by(pool: BlockPool, rows: Sequence[Past | None]) -> Sequence[LayerPast] | None:
    """Return the window of each layer for one call, with a row for each session in order."""
    in_place = [row.blocks for row in rows if isinstance(row, ContextBlocks)]
    if not in_place:
        return stack_rows([row for row in rows if not isinstance(row, ContextBlocks)])
    assert len(in_place) == len(rows), "units with equal batch keys have windows of equal length"
    return windows_of(pool, in_place)


def windows_of(pool: BlockPool, windows: Sequence[tuple[BlockId, ...]]) -> list[BlockWindow]:
    """Return the table of some windows, with each layer's keys and values of all blocks."""
    storage_S2LNAd = pool.storage
    _, _, layers, tokens, _, _ = storage_S2LNAd.shape
    lengths = [len(window) * tokens for window in windows]
    table = BlockTable.of(windows, lengths, storage_S2LNAd.device)
    keys, values = storage_S2LNAd.unbind(1)
    return [BlockWindow(keys[:, layer], values[:, layer], table) for layer in range(layers)]


def stack_rows(rows: Sequence[ContextRow | None]) -> Layers | None:
    """Return rows as one window, in order; rows that were read in that order are not copied."""
    found = [row for row in rows if row is not None]
    if not found:
        return None
    assert len(found) == len(rows), "units with equal batch keys have windows of equal length"
    first, wanted = found[0].layers, [row.row for row in found]
    if all(row.layers is first for row in found):
        if wanted == list(range(len(first[0].k_BAKd))):
            return first
        return tuple(KeysAndValues(seen.k_BAKd[wanted], seen.v_BAKd[wanted]) for seen in first)
    return tuple(
        KeysAndValues(
            torch.stack([seen.k_BAKd[row] for seen, row in zip(layer, wanted, strict=True)]),
            torch.stack([seen.v_BAKd[row] for seen, row in zip(layer, wanted, strict=True)]),
        )
        for layer in zip(*(row.layers for row in found), strict=True)
    )
