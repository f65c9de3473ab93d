"""The caches of a batch, read together and used by row.

The window is read once a frame, for all sessions of the batch at once. Each session's state refers
to one row of the result; as long as the same sessions share batches, nothing is copied again.

Shapes: B sessions, P frames in the cache, L layers, A heads of size d, N tokens of a frame.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from reverie.models.contract.blocks import BlockId, BlockPool
from reverie.models.pocket.network.frame_inputs import Past
from reverie.models.pocket.network.world_model import WorldModel


@dataclass(frozen=True, slots=True)
class PocketPastRow:
    """One session's row of a cache that was read for several sessions."""

    past: Past
    row: int


def read_rows(
    world: WorldModel, pool: BlockPool, windows: Sequence[tuple[BlockId, ...]]
) -> list[PocketPastRow]:
    """Read windows of equal length, P > 0 blocks each."""
    frames = len(windows[0])
    blocks = tuple(block for window in windows for block in window)
    cached = pool.gather(blocks).unflatten(0, (-1, frames))  # type: ignore[no-untyped-call]
    past = world.read(cached)
    return [PocketPastRow(past, row) for row in range(len(windows))]


def joined(rows: Sequence[PocketPastRow]) -> Past:
    """Return the rows as one cache, in their order; rows that were read so are not copied."""
    first = rows[0].past
    wanted = [row.row for row in rows]
    if all(row.past is first for row in rows):
        if wanted == list(range(len(first.layers[0][0]))):
            return first
        return Past(first.frames, tuple((k[wanted], v[wanted]) for k, v in first.layers))
    layers = zip(*(row.past.layers for row in rows), strict=True)
    return Past(
        first.frames,
        tuple(
            (
                torch.stack([k[row] for (k, _), row in zip(layer, wanted, strict=True)]),
                torch.stack([v[row] for (_, v), row in zip(layer, wanted, strict=True)]),
            )
            for layer in layers
        ),
    )
