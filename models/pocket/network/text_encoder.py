"""The text encoder: a prompt becomes one vector.

Shapes: B prompts, L tokens (padded with `PAD`), D channels.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from reverie.models.pocket.config import TextConfig
from reverie.models.pocket.network.vocabulary import MAX_TOKENS, PAD
from reverie.models.pocket.simulator.biomes import Biome, Hour


class TextLayer(nn.Module):
    """Self-attention and a feed-forward, both before a shortcut."""

    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        width = config.width
        self.heads = config.heads
        self.attention_norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.forward_norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x_BLD: Tensor, mask_B11L: Tensor) -> Tensor:
        """Return refined tokens; `mask_B11L` is true where a token may be read."""
        B, L, D = x_BLD.shape
        qkv = self.qkv(self.attention_norm(x_BLD)).view(B, L, 3, self.heads, D // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask_B11L)
        x_BLD = x_BLD + self.out(mixed.transpose(1, 2).reshape(B, L, D))
        change: Tensor = self.down(functional.gelu(self.up(self.forward_norm(x_BLD))))
        return x_BLD + change


class TextEncoder(nn.Module):
    """Embeds words and positions, attends, and returns the output of a leading summary token.

    `biome_head` and `hour_head` classify what a prompt names (their last class is "nothing"); only
    training uses them.
    """

    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        self.config = config
        self.words = nn.Embedding(config.vocabulary, config.width)
        self.positions = nn.Embedding(MAX_TOKENS + 1, config.width)
        self.summary = nn.Parameter(torch.zeros(config.width))
        self.layers = nn.ModuleList(TextLayer(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.biome_head = nn.Linear(config.width, len(Biome) + 1)
        self.hour_head = nn.Linear(config.width, len(Hour) + 1)

    def forward(self, ids_BL: Tensor) -> Tensor:
        """Return embeddings [B, D] of padded word ids; a row of `PAD` alone is the empty prompt."""
        B, L = ids_BL.shape
        x_BLD = torch.cat([self.summary.expand(B, 1, -1), self.words(ids_BL)], dim=1)
        x_BLD = x_BLD + self.positions.weight[: L + 1]
        mask_BL = functional.pad(ids_BL != PAD, (1, 0), value=True)
        for layer in self.layers:
            x_BLD = layer(x_BLD, mask_BL[:, None, None, :])
        embedding: Tensor = self.norm(x_BLD[:, 0])
        return embedding


def pad_ids(prompts: Sequence[tuple[int, ...]]) -> Tensor:
    """Stack prompts of different lengths into word ids [B, MAX_TOKENS]."""
    ids = torch.full((len(prompts), MAX_TOKENS), PAD)
    for row, prompt in enumerate(prompts):
        ids[row, : len(prompt)] = torch.tensor(prompt, dtype=torch.long)
    return ids
