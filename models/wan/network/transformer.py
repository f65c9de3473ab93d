"""One call of the Wan transformer: the flow of some latent frames, given their past.

A call reads the cache and does not change it: it returns the keys and values of its own frames, and
the caller decides whether to keep them. (The public loops also write those of noisy calls into the
cache, and overwrite them with the next call: the numbers are the same.)

Shapes: as in `block.py`; Z latent channels on a grid h x w, L layers.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from reverie.kernels.attention import AttentionBackend, sdpa
from reverie.kernels.block_attention import BlockAttention
from reverie.models.wan.config import WanConfig
from reverie.models.wan.network.block import (
    ContextView,
    KeysAndValues,
    LayerPast,
    WanBlock,
    WanHead,
)
from reverie.models.wan.network.rotary import turns

Prompt = tuple[KeysAndValues, ...]
"""An encoded prompt as every layer reads it."""


@dataclass(frozen=True, slots=True)
class CallOutput:
    """What one call gives.

    Attributes:
        flow_BFZhw: the predicted noise - x0.
        kv_BFLNAd: for each frame its keys (turned) and values, [B, F, 2, L, N, A, d].
    """

    flow_BFZhw: Tensor
    kv_BFLNAd: Tensor


class WanTransformer(nn.Module):
    """The transformer with its public parameter names; bidirectional within a call."""

    def __init__(self, config: WanConfig, attention: AttentionBackend = sdpa) -> None:
        super().__init__()
        self.config = config
        patch = (1, config.patch, config.patch)
        self.patch_embedding = nn.Conv3d(config.in_dim, config.dim, patch, patch)
        self.text_embedding = nn.Sequential(
            nn.Linear(config.text_dim, config.dim),
            nn.GELU(approximate="tanh"),
            nn.Linear(config.dim, config.dim),
        )
        self.time_embedding = nn.Sequential(
            nn.Linear(config.freq_dim, config.dim), nn.SiLU(), nn.Linear(config.dim, config.dim)
        )
        if config.takes_guidance:
            self.guidance_embedding = nn.Sequential(
                nn.Linear(config.freq_dim, config.dim),
                nn.SiLU(),
                nn.Linear(config.dim, config.dim),
            )
        self.time_projection = nn.Sequential(nn.SiLU(), nn.Linear(config.dim, 6 * config.dim))
        self.blocks = nn.ModuleList(WanBlock(config, attention) for _ in range(config.num_layers))
        self.head = WanHead(config)
        self.reads_blocks = False

    def read_prompt(self, text_BEC: Tensor) -> Prompt:
        """Make what the layers read of an encoded prompt; used by every call under that prompt.

        Args:
            text_BEC: rows [B, up to text_len, text_dim]; the rest is filled with zeros, which are
                attended to like any row: the public models were trained so.
        """
        missing = self.config.text_len - text_BEC.shape[1]
        padded = torch.nn.functional.pad(text_BEC, (0, 0, 0, missing))
        text_BED = self.text_embedding(padded.to(self.dtype))
        return tuple(block.cross_attn.read(text_BED) for block in self._blocks())

    def forward(
        self,
        x_BFZhw: Tensor,
        timestep_BF: Tensor,
        prompt: Prompt,
        past: Sequence[LayerPast] | None,
        first_frames: Sequence[int],
        mute_frames: int = 0,
        told_B: Tensor | None = None,
    ) -> CallOutput:
        """Predict the flow of F frames.

        Args:
            x_BFZhw: noisy latents.
            timestep_BF: 0 to 1000, one for each frame.
            prompt: from `read_prompt`.
            past: for each layer the frames before, oldest first, as `past.py` reads them.
            first_frames: for each of the B sessions the absolute number of the first of its F
                frames.
            mute_frames: frames at the head of the call that see and are not seen (a recache whose
                sink stays as it was).
            told_B: scales of guidance, for weights that take one; None is 1.
        """
        _, frames, _, height, width = x_BFZhw.shape
        rows, columns = height // self.config.patch, width // self.config.patch
        tokens = self.patch_embedding(x_BFZhw.transpose(1, 2).to(self.dtype))
        x_BTD = tokens.flatten(2).transpose(1, 2)
        level_BFD = self.time_embedding(self._time_features(timestep_BF))
        if self.config.takes_guidance:
            scale_BF = torch.ones_like(timestep_BF) if told_B is None else told_B[:, None]
            level_BFD = level_BFD + self.guidance_embedding(self._time_features(1000 * scale_BF))
        levels_BF6D = self.time_projection(level_BFD).view(*level_BFD.shape[:2], 6, -1)
        numbers_BF = torch.tensor(first_frames, device=x_BFZhw.device)[:, None] + torch.arange(
            frames, device=x_BFZhw.device
        )
        cosine, sine = turns(numbers_BF, rows, columns, self.config.head_size)
        own = []
        for layer, block in enumerate(self._blocks()):
            seen = None if past is None else past[layer]
            sight = ContextView(cosine, sine, seen, prompt[layer], mute_frames * rows * columns)
            x_BTD, made = block(x_BTD, levels_BF6D, sight)
            own.append(torch.stack((made.k_BAKd, made.v_BAKd), dim=1))
        flow = self._frames(self.head(x_BTD, level_BFD), frames, rows, columns)
        return CallOutput(flow, self._per_frame(torch.stack(own, dim=2), frames))

    def attend_with(
        self, attention: AttentionBackend, in_blocks: BlockAttention | None = None
    ) -> None:
        """Have all layers attend by other backends; the model stays the same.

        Args:
            in_blocks: attends to cache blocks where they lie; None has windows copied.
        """
        for block in self._blocks():
            block.self_attn.attention = block.cross_attn.attention = attention
            block.self_attn.in_blocks = in_blocks
        self.reads_blocks = in_blocks is not None

    @property
    def dtype(self) -> torch.dtype:
        """The type that the weights have."""
        return self.patch_embedding.weight.dtype

    def _time_features(self, timestep_BF: Tensor) -> Tensor:
        """Return cosines and sines [B, F, freq_dim] of timesteps; angles in float64."""
        half = self.config.freq_dim // 2
        steps = torch.arange(half, dtype=torch.float64, device=timestep_BF.device) / half
        angles = timestep_BF.double()[..., None] * torch.exp(-math.log(10000.0) * steps)
        return torch.cat([angles.cos(), angles.sin()], dim=-1).to(self.dtype)

    def _frames(self, patches_BTC: Tensor, frames: int, rows: int, columns: int) -> Tensor:
        """Lay patches (row, column, channel; the channel fastest) out as latents."""
        B, patch = len(patches_BTC), self.config.patch
        cut = patches_BTC.view(B, frames, rows, columns, patch, patch, -1)
        laid: Tensor = cut.permute(0, 1, 6, 2, 4, 3, 5)
        return laid.reshape(B, frames, -1, rows * patch, columns * patch)

    def _per_frame(self, kv_B2LATd: Tensor, frames: int) -> Tensor:
        B, two, layers, heads, _, size = kv_B2LATd.shape
        cut = kv_B2LATd.view(B, two, layers, heads, frames, -1, size)
        return cut.permute(0, 4, 1, 2, 5, 3, 6)

    def _blocks(self) -> Iterator[WanBlock]:
        return (cast(WanBlock, block) for block in self.blocks)


def layers_of(frames_BP2LNAd: Tensor) -> tuple[KeysAndValues, ...]:
    """Lay cached frames of each session side by side, for `forward`.

    Args:
        frames_BP2LNAd: P frames as `CallOutput` gives them, oldest first, [B, P, 2, L, N, A, d].
    """
    joined = frames_BP2LNAd.permute(2, 3, 0, 5, 1, 4, 6).flatten(4, 5)  # [2, L, B, A, K, d]
    return tuple(KeysAndValues(k, v) for k, v in zip(joined[0], joined[1], strict=True))
