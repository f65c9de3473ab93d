"""What text adds to the world model's matrices: a narrow product beside each, zero to begin with.

Frames never pass through it. It gives text room to search what was written, which frames have no
use for, and lets the narrator go on learning when the world model is finished (arXiv:2106.09685).
"""

from torch import Tensor, nn

from reverie.models.pocket.config import WorldConfig


class LowRank(nn.Module):
    """A matrix of low rank."""

    def __init__(self, inputs: int, outputs: int, rank: int) -> None:
        super().__init__()
        self.down = nn.Linear(inputs, rank, bias=False)
        self.up = nn.Linear(rank, outputs, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Return the product."""
        product: Tensor = self.up(self.down(x))
        return product


class BlockAdapter(nn.Module):
    """What is added to the four matrices of a block."""

    def __init__(self, config: WorldConfig, rank: int) -> None:
        super().__init__()
        self.qkv = LowRank(config.width, 3 * config.width, rank)
        self.out = LowRank(config.width, config.width, rank)
        self.up = LowRank(config.width, 2 * config.hidden, rank)
        self.down = LowRank(config.hidden, config.width, rank)
