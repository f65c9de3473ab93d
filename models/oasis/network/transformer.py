"""The Oasis transformer: attention over the tokens of a frame, then over the past of each place.

Attention over the past is causal: the keys and values of a frame do not depend on later frames. So
a call can take the temporal keys and values of earlier frames and compute only the newest;
`cached_BF2LNAd` is what to keep.

Shapes: B sessions, F frames, N tokens of a frame, D channels, A heads of d channels, Z latent
channels on a grid h x w, P past frames, L blocks. Names of parameters are the public ones.
"""

import math
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from reverie.kernels.attention import AttentionBackend, sdpa
from reverie.models.oasis.config import DitConfig
from reverie.models.oasis.network.block import OasisBlock
from reverie.models.oasis.network.rotary import frame_angles, place_angles

TIME_FEATURES = 256
TOP_FREQUENCY = 128.0


@dataclass(frozen=True, slots=True)
class DitOutput:
    """The result of a call.

    Attributes:
        v_BFZhw: the predicted velocity.
        cached_BF2LNAd: keys (not turned: a frame's place in the window changes) and values of the
            temporal halves.
    """

    v_BFZhw: Tensor
    cached_BF2LNAd: Tensor


class PatchEmbed(nn.Module):
    """Maps latent cells to tokens."""

    def __init__(self, config: DitConfig) -> None:
        super().__init__()
        self.proj = nn.Conv2d(config.channels, config.hidden, config.patch, config.patch)


class TimestepEmbedder(nn.Module):
    """Maps noise levels to channels."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(
            nn.Linear(TIME_FEATURES, hidden), nn.SiLU(), nn.Linear(hidden, hidden)
        )

    def forward(self, level_BF: Tensor) -> Tensor:
        """Return [B, F, D]."""
        half = TIME_FEATURES // 2
        steps = torch.arange(half, dtype=torch.float32, device=level_BF.device) / half
        angles = level_BF.float()[..., None] * torch.exp(-math.log(10000.0) * steps)
        features = torch.cat([angles.cos(), angles.sin()], dim=-1)
        first = cast(nn.Linear, self.mlp[0])
        result: Tensor = self.mlp(features.to(first.weight.dtype))
        return result


class FinalLayer(nn.Module):
    """Maps tokens to latent cells."""

    def __init__(self, config: DitConfig) -> None:
        super().__init__()
        self.hidden = config.hidden
        self.linear = nn.Linear(config.hidden, config.patch**2 * config.channels)
        self.adaLN_modulation = nn.Sequential(
            nn.SiLU(), nn.Linear(config.hidden, 2 * config.hidden)
        )

    def forward(self, x_BFND: Tensor, condition_BFD: Tensor) -> Tensor:
        """Return [B, F, N, patch * patch * Z], the channel fastest."""
        shift, scale = self.adaLN_modulation(condition_BFD)[:, :, None].chunk(2, dim=-1)
        normal = functional.layer_norm(x_BFND, (self.hidden,), eps=1e-6)
        result: Tensor = self.linear(normal * (1 + scale) + shift)
        return result


class OasisTransformer(nn.Module):
    """The public DiT."""

    def __init__(self, config: DitConfig, attention: AttentionBackend = sdpa) -> None:
        super().__init__()
        self.config = config
        self.x_embedder = PatchEmbed(config)
        self.t_embedder = TimestepEmbedder(config.hidden)
        self.external_cond = nn.Linear(config.actions, config.hidden)
        self.blocks = nn.ModuleList(OasisBlock(config, attention) for _ in range(config.depth))
        self.final_layer = FinalLayer(config)

    def forward(
        self, x_BFZhw: Tensor, level_BF: Tensor, action_BFE: Tensor, past: Tensor | None = None
    ) -> DitOutput:
        """Predict the velocity of F frames that follow P past ones.

        Args:
            level_BF: noise levels, 0 to 999.
            action_BFE: a row of `ACTIONS` for each frame: the action that leads to it.
            past: `cached_BF2LNAd` of the frames before, oldest first.
        """
        B, F = x_BFZhw.shape[:2]
        config = self.config
        cells = self.x_embedder.proj(x_BFZhw.flatten(0, 1).to(self.dtype))
        x_BFND = cells.flatten(2).transpose(1, 2).unflatten(0, (B, F))
        condition = self.t_embedder(level_BF) + self.external_cond(action_BFE.to(self.dtype))
        size = config.head_size
        places = place_angles(config.rows, config.columns, size // 2, TOP_FREQUENCY)
        frames = frame_angles(F + (0 if past is None else past.shape[1]), size)
        kept = []
        for layer, block in enumerate(self.blocks):
            seen = None if past is None else past[:, :, :, layer]
            x_BFND, cached = block(x_BFND, condition, places, frames, seen)
            kept.append(cached)
        patches = self.final_layer(x_BFND, condition)
        return DitOutput(self._cells(patches), torch.stack(kept, dim=3))

    def attend_with(self, attention: AttentionBackend) -> None:
        """Set the attention backend of all blocks; the model stays the same."""
        for block in self.blocks:
            cast(OasisBlock, block).attention = attention

    @property
    def dtype(self) -> torch.dtype:
        """The type of the weights."""
        return self.external_cond.weight.dtype

    def _cells(self, patches_BFNC: Tensor) -> Tensor:
        config = self.config
        B, F = patches_BFNC.shape[:2]
        p = config.patch
        cut = patches_BFNC.reshape(B, F, config.rows, config.columns, p, p, config.channels)
        return cut.permute(0, 1, 6, 2, 4, 3, 5).reshape(
            B, F, config.channels, config.height, config.width
        )
