"""Low-rank products that text adds to the world model's matrices, zero before training.

Frames never pass through them. They let text search what was written, and let the narrator
continue to learn when the world model is finished (arXiv:2106.09685).
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
    """The products that are added to the four matrices of a block."""

    def __init__(self, config: WorldConfig, rank: int) -> None:
        super().__init__()
        self.qkv = LowRank(config.width, 3 * config.width, rank)
        self.out = LowRank(config.width, config.width, rank)
        self.up = LowRank(config.width, 2 * config.hidden, rank)
        self.down = LowRank(config.hidden, config.width, rank)
