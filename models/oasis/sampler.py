"""The DDIM sampler of Oasis, with a sigmoid noise schedule.

The network predicts v; from a level with cumulative alpha a,
    x0 = sqrt(a) x - sqrt(1 - a) v,   eps = (sqrt(1 / a) x - x0) / sqrt(1 / a - 1).
Past frames are given a low level, but no noise is added to them.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

LEVELS = 1000
START, END = -3.0, 3.0
CONTEXT_LEVEL = 14
NOISE_LIMIT = 20.0


@dataclass(frozen=True, slots=True)
class Ddim:
    """The noise schedule, and the levels of a frame's steps.

    Attributes:
        alphas: cumulative alpha of each level.
        levels: from the noisiest to the last; the result of the last step is clean.
    """

    alphas: Tensor
    levels: tuple[int, ...]

    @classmethod
    def of(cls, steps: int) -> "Ddim":
        """Return the schedule for a number of steps a frame."""
        spread = torch.linspace(-1, LEVELS - 1, steps + 1).long().tolist()
        return cls(_cumulative_alphas(), tuple(reversed(spread[1:])))

    def step(self, x: Tensor, v: Tensor, index: int) -> Tensor:
        """Return the frame one level cleaner.

        Args:
            index: which of `levels` it is at.
        """
        alpha = self.alphas[self.levels[index]]
        x, v = x.float(), v.float()
        clean = alpha.sqrt() * x - (1 - alpha).sqrt() * v
        noise = ((1 / alpha).sqrt() * x - clean) / (1 / alpha - 1).sqrt()
        last = index + 1 == len(self.levels)
        after = torch.ones(()) if last else self.alphas[self.levels[index + 1]]
        return after.sqrt() * clean + (1 - after).sqrt() * noise


def _cumulative_alphas() -> Tensor:
    position = torch.linspace(0, LEVELS, LEVELS + 1, dtype=torch.float64) / LEVELS
    low, high = torch.tensor(START).double().sigmoid(), torch.tensor(END).double().sigmoid()
    fall = (high - (position * (END - START) + START).sigmoid()) / (high - low)
    fall = fall / fall[0]
    betas = (1 - fall[1:] / fall[:-1]).clamp(0, 0.999)
    return (1 - betas).float().cumprod(dim=0)
