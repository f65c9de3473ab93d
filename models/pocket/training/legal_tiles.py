"""Which map a generated frame shows: each of its tiles is compared with every kind.

The encoder reads each cell alone, so a texture has the same latents everywhere: all legal cells fit
in a small table, and a frame is read by its distances to them.

Shapes: B frames, Z channels on a grid h x w, T tiles in view along one axis, P palettes, K kinds.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reverie.models.pocket.network.codec import PictureCodec, frames_to_tensor
from reverie.models.pocket.simulator.biomes import Biome, Hour
from reverie.models.pocket.simulator.palettes import palettes
from reverie.models.pocket.simulator.simulator import TILES_IN_VIEW, WorldState
from reverie.models.pocket.simulator.terrain import Tile
from reverie.models.pocket.simulator.tiles import atlas, texture_of
from reverie.models.pocket.training.corruption import WALKER_COLUMNS, WALKER_ROWS

CELLS = 2  # along one side of a tile
PHASES = 2


@dataclass(frozen=True, slots=True)
class TileReading:
    """The tiles that were read from frames.

    Attributes:
        kinds: the nearest kind of every tile in the nearest palette: [B, T, T].
        errors: squared distance of every kind in that palette, the mean over visible cells
            and channels: [B, T, T, K]; zeros where nothing is visible.
        cells: visible cells of every tile, without those that the walker covers: [B, T, T].
        palette: the nearest palette, `biome * len(Hour) + hour`: [B].
    """

    kinds: NDArray[np.uint8]
    errors: NDArray[np.float32]
    cells: NDArray[np.int64]
    palette: NDArray[np.int64]


class LegalTiles:
    """The latents of every texture in every palette.

    Args:
        codec: a trained codec; its encoder must read cells alone.
    """

    def __init__(self, codec: PictureCodec) -> None:
        textures = atlas()[texture_of()]  # [biomes, K, phases, 16, 16]
        colours = np.stack([[palettes()[b, h][textures[b]] for h in Hour] for b in Biome])
        flat = torch.from_numpy(colours.reshape(-1, *colours.shape[-3:]))
        with torch.no_grad():
            latents = codec.encode(frames_to_tensor(flat.to(codec.latent_mean.device)))
        shape = (len(Biome) * len(Hour), len(Tile), PHASES, latents.shape[1], CELLS * CELLS)
        # [phases, cell * Z, P * K], and the squared lengths [phases, cell, P * K]
        codes = latents.reshape(shape).permute(2, 4, 3, 0, 1).flatten(3)
        self._codes = codes.flatten(1, 2)
        self._lengths = codes.square().sum(dim=2)

    def read(self, latents_BZhw: Tensor, state: WorldState) -> TileReading:
        """Read frames; alignment, walker and phase of the water are those of `state`."""
        B, Z, h, w = latents_BZhw.shape
        side = TILES_IN_VIEW * CELLS
        canvas = latents_BZhw.new_zeros(B, side, side, Z)
        visible = latents_BZhw.new_zeros(B, side, side, 1)
        shown = latents_BZhw.new_ones(h, w, 1)
        shown[WALKER_ROWS, WALKER_COLUMNS] = 0
        for row, (down, right) in enumerate(zip(state.y % CELLS, state.x % CELLS, strict=True)):
            place = (row, slice(down, down + h), slice(right, right + w))
            visible[place] = shown
            canvas[place] = latents_BZhw[row].permute(1, 2, 0) * shown
        phase = torch.from_numpy(state.clock % PHASES).to(latents_BZhw.device)
        made, seen = _tiles(canvas), _tiles(visible)
        errors = torch.baddbmm(torch.bmm(seen, self._lengths[phase]), made, self._codes[phase],
                               alpha=-2)  # fmt: skip
        errors = errors + made.square().sum(dim=-1, keepdim=True)
        cells = seen.sum(dim=-1, keepdim=True)
        errors = (errors / (cells.clamp(min=1) * Z)).view(B, -1, len(Biome) * len(Hour), len(Tile))
        weighted = errors.min(dim=-1).values * cells
        palette = weighted.sum(dim=1).argmin(dim=-1)
        chosen = errors[torch.arange(B, device=palette.device), :, palette]
        shape = (B, TILES_IN_VIEW, TILES_IN_VIEW)
        return TileReading(
            kinds=chosen.argmin(dim=-1).view(shape).byte().cpu().numpy(),
            errors=chosen.view(*shape, -1).cpu().numpy(),
            cells=cells.view(shape).long().cpu().numpy(),
            palette=palette.cpu().numpy(),
        )


def _tiles(canvas_BHWZ: Tensor) -> Tensor:
    """Gather the cells of every tile: [B, T * T, cell * Z]."""
    B, _, _, Z = canvas_BHWZ.shape
    cut = canvas_BHWZ.view(B, TILES_IN_VIEW, CELLS, TILES_IN_VIEW, CELLS, Z)
    return cut.permute(0, 1, 3, 2, 4, 5).reshape(B, TILES_IN_VIEW**2, -1)
