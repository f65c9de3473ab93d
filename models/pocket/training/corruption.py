"""Damage to the previous frame's latents, so that the world model learns to repair its own errors.

Shapes: B clips, F frames, Z channels on a grid h x w.
"""

import torch
from torch import Tensor
from torch.nn import functional

from reverie.models.pocket.simulator import CELL_PX, WALKER_LEFT_PX, WALKER_TOP_PX
from reverie.models.pocket.walker import WALKER_HEIGHT_PX, WALKER_WIDTH_PX

NOISE_SHARE = 0.7
LARGEST_NOISE = 0.5
BLUR_SHARE = 0.15
DRIFT_SHARE = 0.3
LARGEST_DRIFT = 0.3
WIPE_SHARE = 0.1
MIX_SHARE = 0.2
LARGEST_MIX = 0.5
MIX_BLOCKS = 4

WALKER_ROWS = slice(WALKER_TOP_PX // CELL_PX, (WALKER_TOP_PX + WALKER_HEIGHT_PX) // CELL_PX)
WALKER_COLUMNS = slice(WALKER_LEFT_PX // CELL_PX, (WALKER_LEFT_PX + WALKER_WIDTH_PX) // CELL_PX)


def _chosen(shape: tuple[int, ...], share: float, generator: torch.Generator) -> Tensor:
    return (torch.rand(shape, generator=generator) < share).float()[..., None, None, None]


def damage(latents_BFZhw: Tensor, generator: torch.Generator) -> Tensor:
    """Blur some frames, mix in other worlds, shift colours, wipe out walkers, and add noise."""
    B, frames, Z, h, w = latents_BFZhw.shape
    device = latents_BFZhw.device
    blurred = functional.avg_pool2d(latents_BFZhw.flatten(0, 1), 3, 1, 1, count_include_pad=False)
    share = _chosen((B, frames), BLUR_SHARE, generator) * torch.rand(
        (B, frames, 1, 1, 1), generator=generator
    )
    result = torch.lerp(latents_BFZhw, blurred.view(B, frames, Z, h, w), share.to(device))
    result = _mix_worlds(result, generator)
    result = _wipe_walker(result, _chosen((B, frames), WIPE_SHARE, generator).to(device))
    drift = torch.rand((B, frames, 1, 1, 1), generator=generator) * LARGEST_DRIFT
    drift = drift * _chosen((B, frames), DRIFT_SHARE, generator)
    drift = drift * torch.randn((B, frames, Z, 1, 1), generator=generator)
    size = torch.rand((B, frames, 1, 1, 1), generator=generator) * LARGEST_NOISE
    size = size * _chosen((B, frames), NOISE_SHARE, generator)
    noise = torch.randn((B, frames, Z, h, w), generator=generator)
    return result + (drift + size * noise).to(device)


def _mix_worlds(latents_BFZhw: Tensor, generator: torch.Generator) -> Tensor:
    """Let some blocks of some frames fade towards the next clip of the batch."""
    B, frames, _, h, _ = latents_BFZhw.shape
    blocks = (B, frames, 1, MIX_BLOCKS, MIX_BLOCKS)
    share = LARGEST_MIX * torch.rand(blocks, generator=generator)
    share *= torch.rand(blocks, generator=generator) < 0.4
    share *= _chosen((B, frames), MIX_SHARE, generator)
    size = h // MIX_BLOCKS
    share = share.repeat_interleave(size, -1).repeat_interleave(size, -2)
    return torch.lerp(latents_BFZhw, latents_BFZhw.roll(1, 0), share.to(latents_BFZhw.device))


def _wipe_walker(latents_BFZhw: Tensor, chosen_BF111: Tensor) -> Tensor:
    """Cover the walker with the land beside him, where `chosen_BF111` is 1."""
    columns = WALKER_COLUMNS
    beside = slice(columns.stop, columns.stop + columns.stop - columns.start)
    result = latents_BFZhw.clone()
    result[..., WALKER_ROWS, columns] = torch.lerp(
        latents_BFZhw[..., WALKER_ROWS, columns],
        latents_BFZhw[..., WALKER_ROWS, beside],
        chosen_BF111,
    )
    return result
