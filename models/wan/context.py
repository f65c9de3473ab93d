"""What blocks look back on, read for several sessions at once and used by row.

The window is read once a block. Each session's state keeps a row of what was read; as long as the
same sessions go on together, nothing is copied again. Where attention can read cache blocks in
place, nothing is copied at all, and a row is their ids.
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
    """One session's row of frames that were read for several."""

    layers: Layers
    row: int


@dataclass(frozen=True, slots=True)
class ContextBlocks:
    """One session's cache blocks, left where they lie: whoever has this holds them."""

    blocks: tuple[BlockId, ...]


Past = ContextRow | ContextBlocks


def read_rows(
    pool: BlockPool, windows: Sequence[tuple[BlockId, ...]]
) -> list[ContextRow] | list[None]:
    """Read windows of equal length; nothing where they are empty."""
    if not windows or not windows[0]:
        return [None] * len(windows)
    frames = len(windows[0])
    blocks = tuple(block for window in windows for block in window)
    layers = layers_of(pool.gather(blocks).view(len(windows), frames, *pool.view(blocks[0]).shape))
    return [ContextRow(layers, row) for row in range(len(windows))]


def left_in_place(windows: Sequence[tuple[BlockId, ...]]) -> Sequence[ContextBlocks | None]:
    """Read nothing, and say where the windows are; nothing where they are empty."""
    return [ContextBlocks(window) if window else None for window in windows]


def seen_by(pool: BlockPool, rows: Sequence[Past | None]) -> Sequence[LayerPast] | None:
    """Return what the layers of one call see, a row for each session, in their order."""
    in_place = [row.blocks for row in rows if isinstance(row, ContextBlocks)]
    if not in_place:
        return joined([row for row in rows if not isinstance(row, ContextBlocks)])
    assert len(in_place) == len(rows), "units with equal batch keys see equally many frames"
    return windows_of(pool, in_place)


def windows_of(pool: BlockPool, windows: Sequence[tuple[BlockId, ...]]) -> list[BlockWindow]:
    """Return the table of some windows, with each layer's keys and values of all blocks."""
    storage_S2LNAd = pool.storage
    _, _, layers, tokens, _, _ = storage_S2LNAd.shape
    lengths = [len(window) * tokens for window in windows]
    table = BlockTable.of(windows, lengths, storage_S2LNAd.device)
    keys, values = storage_S2LNAd.unbind(1)
    return [BlockWindow(keys[:, layer], values[:, layer], table) for layer in range(layers)]


def joined(rows: Sequence[ContextRow | None]) -> Layers | None:
    """Return rows as one past, in their order; what was read in that order is not copied."""
    found = [row for row in rows if row is not None]
    if not found:
        return None
    assert len(found) == len(rows), "units with equal batch keys see equally many frames"
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
