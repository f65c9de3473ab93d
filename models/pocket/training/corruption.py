"""Damage to the frames that the world model sees, so that it learns to repair its own errors.

In serving the model makes every frame except the first, and its errors stay in view, in the frame
before and in the cache. So most damage here lasts for a whole clip: colours that have moved towards
another palette, faded textures, a walker who is half gone.

Shapes: B clips, F frames, Z channels on a grid h x w.
"""

import torch
from torch import Tensor
from torch.nn import functional

from reverie.models.pocket.simulator.simulator import CELL_PX, WALKER_LEFT_PX, WALKER_TOP_PX
from reverie.models.pocket.simulator.walker import WALKER_HEIGHT_PX, WALKER_WIDTH_PX

CLEAN_SHARE = 0.2
TINT_SHARE = 0.4
LARGEST_TINT = 0.4
FADE_SHARE = 0.35
LARGEST_FADE = 0.6
SHIFT_SHARE = 0.5
LARGEST_SHIFT = 0.35
LARGEST_SCALE = 0.25
NOISE_SHARE = 0.7
LARGEST_NOISE = 0.5
WIPE_SHARE = 0.15
MIX_SHARE = 0.3
LARGEST_MIX = 0.6
MIX_BLOCKS = 8

WALKER_ROWS = slice(WALKER_TOP_PX // CELL_PX, (WALKER_TOP_PX + WALKER_HEIGHT_PX) // CELL_PX)
WALKER_COLUMNS = slice(WALKER_LEFT_PX // CELL_PX, (WALKER_LEFT_PX + WALKER_WIDTH_PX) // CELL_PX)


class Damage:
    """Draw damage for a batch of clips.

    Args:
        generator: of all draws, on the CPU.
    """

    def __init__(self, generator: torch.Generator) -> None:
        self._generator = generator

    def __call__(self, latents_BFZhw: Tensor, tinted_BFZhw: Tensor, named_B: Tensor) -> Tensor:
        """Return damaged latents.

        Args:
            latents_BFZhw: the truth.
            tinted_BFZhw: the same frames in other colours.
            named_B: whether the text names the right colours, so that the frames can lose them.
        """
        B = len(latents_BFZhw)
        limit = torch.where(named_B.cpu(), 1.0, LARGEST_TINT)[:, None, None, None, None]
        tint = limit * self._amount((B, 1), TINT_SHARE)
        made = torch.lerp(latents_BFZhw, tinted_BFZhw, tint.to(latents_BFZhw.device))
        made = self._fade(made)
        made = self._mix_worlds(made)
        made = self._wipe_walker(made)
        made = self._shift(made)
        made = self._noise(made)
        clean = self._chosen((B, 1), CLEAN_SHARE).to(made.device)
        return torch.lerp(made, latents_BFZhw, clean)

    def _rand(self, *shape: int) -> Tensor:
        return torch.rand(shape, generator=self._generator)

    def _chosen(self, shape: tuple[int, ...], share: float) -> Tensor:
        return (self._rand(*shape) < share).float()[..., None, None, None]

    def _amount(self, shape: tuple[int, ...], share: float) -> Tensor:
        return self._chosen(shape, share) * self._rand(*shape)[..., None, None, None]

    def _fade(self, latents_BFZhw: Tensor) -> Tensor:
        """Fade textures towards the colours around them, or towards the mean of the frame."""
        B, device = len(latents_BFZhw), latents_BFZhw.device
        flat = latents_BFZhw.flatten(0, 1)
        near = functional.avg_pool2d(flat, 3, 1, 1, count_include_pad=False).view_as(latents_BFZhw)
        far = latents_BFZhw.mean(dim=(3, 4), keepdim=True)
        goal = torch.lerp(near, far, self._amount((B, 1), 0.3).to(device))
        return torch.lerp(
            latents_BFZhw, goal, LARGEST_FADE * self._amount((B, 1), FADE_SHARE).to(device)
        )

    def _shift(self, latents_BFZhw: Tensor) -> Tensor:
        """Move and scale channels, mostly in the same way in all frames of a clip."""
        B, frames, Z, _, _ = latents_BFZhw.shape
        amount = self._amount((B, 1), SHIFT_SHARE)
        moved = torch.randn((B, 1, Z, 1, 1), generator=self._generator)
        moved = moved + 0.3 * torch.randn((B, frames, Z, 1, 1), generator=self._generator)
        scale = 1 + LARGEST_SCALE * amount * torch.randn((B, 1, Z, 1, 1), generator=self._generator)
        device = latents_BFZhw.device
        return latents_BFZhw * scale.to(device) + (LARGEST_SHIFT * amount * moved).to(device)

    def _noise(self, latents_BFZhw: Tensor) -> Tensor:
        """Add noise, partly the same in all frames of a clip."""
        shape = latents_BFZhw.shape
        size = LARGEST_NOISE * self._amount(tuple(shape[:2]), NOISE_SHARE)
        noise = torch.randn(shape, generator=self._generator)
        return latents_BFZhw + (size * noise).to(latents_BFZhw.device)

    def _mix_worlds(self, latents_BFZhw: Tensor) -> Tensor:
        """Fade some blocks of some frames towards the next clip of the batch."""
        B, frames, _, h, _ = latents_BFZhw.shape
        blocks = (B, frames, 1, MIX_BLOCKS, MIX_BLOCKS)
        share = LARGEST_MIX * self._rand(*blocks)
        share *= self._rand(*blocks) < 0.3
        share *= self._chosen((B, frames), MIX_SHARE)
        size = h // MIX_BLOCKS
        share = share.repeat_interleave(size, -1).repeat_interleave(size, -2)
        return torch.lerp(latents_BFZhw, latents_BFZhw.roll(1, 0), share.to(latents_BFZhw.device))

    def _wipe_walker(self, latents_BFZhw: Tensor) -> Tensor:
        """Cover walkers, some in part, with the land next to them."""
        columns = WALKER_COLUMNS
        neighbours = slice(columns.stop, columns.stop + columns.stop - columns.start)
        share = self._amount(tuple(latents_BFZhw.shape[:2]), WIPE_SHARE)
        result = latents_BFZhw.clone()
        result[..., WALKER_ROWS, columns] = torch.lerp(
            latents_BFZhw[..., WALKER_ROWS, columns],
            latents_BFZhw[..., WALKER_ROWS, neighbours],
            share.to(latents_BFZhw.device),
        )
        return result
