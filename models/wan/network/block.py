"""One block of the Wan transformer: self-attention, attention to the prompt, a feed-forward.

Shapes: B sessions, F new latent frames, N tokens of a frame, T = F * N tokens, D channels
of a token, A heads of d channels, E rows of the prompt. Parameters have their public names, so
that public checkpoints load unchanged.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from reverie.kernels.attention import AttentionBackend
from reverie.kernels.block_attention import BlockAttention, BlockWindow
from reverie.models.wan.config import WanConfig
from reverie.models.wan.network.rotary import turn


@dataclass(frozen=True, slots=True)
class KeysAndValues:
    """What a layer's attention reads, both [B, A, tokens, d]; keys of frames are turned already."""

    k_BAKd: Tensor
    v_BAKd: Tensor


LayerPast = KeysAndValues | BlockWindow
"""The frames before, as one layer sees them: copied, or in the cache blocks where they lie."""


@dataclass(frozen=True, slots=True)
class ContextView:
    """What the tokens of one call see in one layer.

    Attributes:
        cosine: of the tokens' own positions, [B, T, d / 2], for `turn`.
        sine: likewise.
        past: the frames before; None when there are none.
        prompt: the encoded prompt.
        mute: tokens at the start of the call whose keys no query attends to.
    """

    cosine: Tensor
    sine: Tensor
    past: LayerPast | None
    prompt: KeysAndValues
    mute: int = 0


class RmsNorm(nn.Module):
    """Root-mean-square norm over all channels, before they are split into heads."""

    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise in float32, scale in the type of `x`."""
        x32 = x.float()
        normal = x32 * torch.rsqrt(x32.square().mean(-1, keepdim=True) + self.eps)
        return normal.to(x.dtype) * self.weight


class SelfAttention(nn.Module):
    """Tokens see each other, and the past; also the projections of the look at the prompt."""

    def __init__(self, config: WanConfig, attention: AttentionBackend) -> None:
        super().__init__()
        self.heads, self.attention = config.num_heads, attention
        self.in_blocks: BlockAttention | None = None  # see `WanTransformer.attend_with`
        self.q = nn.Linear(config.dim, config.dim)
        self.k = nn.Linear(config.dim, config.dim)
        self.v = nn.Linear(config.dim, config.dim)
        self.o = nn.Linear(config.dim, config.dim)
        self.norm_q = RmsNorm(config.dim, config.eps)
        self.norm_k = RmsNorm(config.dim, config.eps)

    def forward(self, x_BTD: Tensor, sight: ContextView) -> tuple[Tensor, KeysAndValues]:
        """Return what is added to the tokens, and the keys and values of these tokens."""
        q = turn(self._split(self.norm_q(self.q(x_BTD))), sight.cosine, sight.sine)
        k = turn(self._split(self.norm_k(self.k(x_BTD))), sight.cosine, sight.sine)
        own = KeysAndValues(k.transpose(1, 2), self._split(self.v(x_BTD)).transpose(1, 2))
        keys, values = own.k_BAKd[:, :, sight.mute :], own.v_BAKd[:, :, sight.mute :]
        if isinstance(sight.past, BlockWindow):
            assert self.in_blocks is not None, "this backend cannot read cache blocks in place"
            mixed = self.in_blocks(q.transpose(1, 2), keys, values, sight.past)
            return self._out(mixed), own
        if sight.past is not None:
            keys = torch.cat([sight.past.k_BAKd, keys], dim=2)
            values = torch.cat([sight.past.v_BAKd, values], dim=2)
        return self._mix(q, KeysAndValues(keys, values)), own

    def look(self, x_BTD: Tensor, prompt: KeysAndValues) -> Tensor:
        """Return what the prompt adds to the tokens."""
        return self._mix(self._split(self.norm_q(self.q(x_BTD))), prompt)

    def read(self, text_BED: Tensor) -> KeysAndValues:
        """Return keys and values of an embedded prompt, once for all calls under it."""
        k = self._split(self.norm_k(self.k(text_BED)))
        return KeysAndValues(k.transpose(1, 2), self._split(self.v(text_BED)).transpose(1, 2))

    def _split(self, x_BTD: Tensor) -> Tensor:
        B, tokens, _ = x_BTD.shape
        return x_BTD.view(B, tokens, self.heads, -1)

    def _mix(self, q_BTAd: Tensor, seen: KeysAndValues) -> Tensor:
        return self._out(self.attention(q_BTAd.transpose(1, 2), seen.k_BAKd, seen.v_BAKd))

    def _out(self, mixed_BATd: Tensor) -> Tensor:
        result: Tensor = self.o(mixed_BATd.transpose(1, 2).flatten(2))
        return result


class WanBlock(nn.Module):
    """Self-attention and feed-forward shifted, scaled and gated by the frame's noise level."""

    def __init__(self, config: WanConfig, attention: AttentionBackend) -> None:
        super().__init__()
        self.dim, self.eps = config.dim, config.eps
        self.self_attn = SelfAttention(config, attention)
        self.norm3 = nn.LayerNorm(config.dim, config.eps)
        self.cross_attn = SelfAttention(config, attention)
        self.ffn = nn.Sequential(
            nn.Linear(config.dim, config.ffn_dim),
            nn.GELU(approximate="tanh"),
            nn.Linear(config.ffn_dim, config.dim),
        )
        self.modulation = nn.Parameter(torch.randn(1, 6, config.dim) / config.dim**0.5)

    def forward(
        self, x_BTD: Tensor, levels_BF6D: Tensor, sight: ContextView
    ) -> tuple[Tensor, KeysAndValues]:
        """Return the tokens, and their keys and values for the cache.

        Args:
            levels_BF6D: shift, scale and gate of both parts, a row for each frame.
        """
        frames = levels_BF6D.shape[1]
        rows = (self.modulation + levels_BF6D).to(x_BTD.dtype)
        shift, scale, gate, ffn_shift, ffn_scale, ffn_gate = (
            row.repeat_interleave(x_BTD.shape[1] // frames, dim=1) for row in rows.unbind(2)
        )
        attended, own = self.self_attn(self._normal(x_BTD) * (1 + scale) + shift, sight)
        x_BTD = x_BTD + gate * attended
        x_BTD = x_BTD + self.cross_attn.look(self.norm3(x_BTD), sight.prompt)
        change = self.ffn(self._normal(x_BTD) * (1 + ffn_scale) + ffn_shift)
        return x_BTD + ffn_gate * change, own

    def _normal(self, x_BTD: Tensor) -> Tensor:
        return functional.layer_norm(x_BTD, (self.dim,), eps=self.eps)


class WanHead(nn.Module):
    """From tokens to patches of flow."""

    def __init__(self, config: WanConfig) -> None:
        super().__init__()
        self.dim, self.eps = config.dim, config.eps
        self.head = nn.Linear(config.dim, config.out_dim * config.patch**2)
        self.modulation = nn.Parameter(torch.randn(1, 2, config.dim) / config.dim**0.5)

    def forward(self, x_BTD: Tensor, level_BFD: Tensor) -> Tensor:
        """Return [B, T, patch * patch * out_dim]; the row of a frame is its noise level's."""
        rows = (self.modulation + level_BFD[:, :, None]).to(x_BTD.dtype)
        frames = level_BFD.shape[1]
        shift, scale = (
            row.repeat_interleave(x_BTD.shape[1] // frames, dim=1) for row in rows.unbind(2)
        )
        normal = functional.layer_norm(x_BTD, (self.dim,), eps=self.eps)
        patches: Tensor = self.head(normal * (1 + scale) + shift)
        return patches
