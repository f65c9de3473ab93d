"""Calls of the transformer for several sessions at once, and the cache that they read and write.

Each row of a call is a session, with its own noise level and frames. All rows of a call have
equally many new and past frames.

Shapes: B sessions, F latent frames, Z channels on a grid h x w.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from reverie.models.contract.blocks import BlockId, BlockPool
from reverie.models.wan.components import WanComponents
from reverie.models.wan.context import Past, left_in_place, read_rows, seen_by
from reverie.models.wan.guidance import WanRow, scales_of
from reverie.models.wan.network.block import KeysAndValues
from reverie.models.wan.network.transformer import Prompt
from reverie.models.wan.state import WanState
from reverie.models.wan.window import seen_past


class TransformerCalls:
    """Calls the transformer of one instance."""

    def __init__(self, components: WanComponents, pool: BlockPool) -> None:
        self._components, self._pool = components, pool
        self._causal = components.causal

    def look_back(self, states: Sequence[WanState]) -> list[WanState]:
        """Read the window of each state whose block has not read it yet."""
        new = [state for state in states if state.past is None]
        seen = [seen_past(state.blocks, len(point_of(state)), self._causal) for state in new]
        read = iter(self.read(seen))
        return [replace(s, past=next(read)) if s.past is None else s for s in states]

    def read(self, windows: Sequence[tuple[BlockId, ...]]) -> Sequence[Past | None]:
        """Read windows of equal length: copies of them, or where they are."""
        in_place = self._components.transformer.reads_blocks
        return left_in_place(windows) if in_place else read_rows(self._pool, windows)

    def write(self, blocks: tuple[BlockId, ...], frames_F2LNAd: Tensor) -> None:
        """Write the keys and values of some frames, a cache block each."""
        for block, frame in zip(blocks, frames_F2LNAd, strict=True):
            self._pool.view(block).copy_(frame)

    def run(self, rows: Sequence[WanRow], mute: int = 0) -> tuple[Tensor, Tensor]:
        """Return the flows [B, F, Z, h, w] and what the cache keeps, [B, F, 2, L, N, A, d]."""
        x_BFZhw = torch.stack([row.x_FZhw for row in rows])
        levels = torch.tensor([row.timestep for row in rows], device=x_BFZhw.device)
        assert len({row.mix for row in rows}) == 1, "all rows of a call have one mix of adapters"
        with self._components.adapters.applied(rows[0].mix):
            asked = (
                x_BFZhw,
                levels[:, None].expand(x_BFZhw.shape[:2]),
                _texts(rows),
                seen_by(self._pool, [row.past for row in rows]),
                [row.first_frame for row in rows],
                mute,
            )
            told_B = scales_of(rows)
            network = self._components.transformer
            output = network(*asked) if told_B is None else network(*asked, told_B)
        return output.flow_BFZhw.float(), output.kv_BFLNAd


def row_of(state: WanState, x_FZhw: Tensor, timestep: float, first_frame: int) -> WanRow:
    """Return a session's row of a call."""
    assert state.text is not None, "the prompt is encoded first"
    return WanRow(state.text, x_FZhw, timestep, first_frame, state.past, state.mix)


def point_of(state: WanState) -> Tensor:
    """Return the block in progress, between noise and latents."""
    assert state.point_FZhw is not None, "a block begins with a point"
    return state.point_FZhw


def _texts(rows: Sequence[WanRow]) -> Prompt:
    if len(rows) == 1:
        return rows[0].text
    return tuple(
        KeysAndValues(
            torch.cat([seen.k_BAKd for seen in layer]), torch.cat([seen.v_BAKd for seen in layer])
        )
        for layer in zip(*(row.text for row in rows), strict=True)
    )
