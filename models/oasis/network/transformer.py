"""The Oasis transformer: in each block tokens of a frame see each other, then a place its past.

The past of a place is all that frames have of each other, and it is causal: what a frame is to
later ones does not depend on them. So a call may be given the temporal keys and values of the
frames before, and compute the newest alone; `cached` says what to keep.

Shapes: B sessions, F frames, N tokens of a frame, D channels, A heads of d channels, Z latent
channels on a grid h x w, P past frames, L blocks. Names of parameters are the public ones.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from reverie.kernels.attention import AttentionBackend, sdpa
from reverie.models.oasis.config import DitConfig
from reverie.models.oasis.network.rotary import frame_angles, place_angles, turn

TIME_FEATURES = 256
TOP_FREQUENCY = 128.0


@dataclass(frozen=True, slots=True)
class DitOutput:
    """What a call gives.

    Attributes:
        v_BFZhw: the predicted velocity.
        cached_BF2LNAd: keys (not turned: a frame's place in the window changes) and values of the
            temporal halves.
    """

    v_BFZhw: Tensor
    cached_BF2LNAd: Tensor


class AttentionProjections(nn.Module):
    """Projections of one attention; who sees whom is the caller's business."""

    def __init__(self, config: DitConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.to_qkv = nn.Linear(config.hidden, 3 * config.hidden, bias=False)
        self.to_out = nn.Linear(config.hidden, config.hidden)

    def split(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values [..., A, d] of [..., D]."""
        q, k, v = self.to_qkv(x).view(*x.shape[:-1], 3, self.heads, -1).unbind(-3)
        return q, k, v


class Mlp(nn.Module):
    """A feed-forward."""

    def __init__(self, config: DitConfig) -> None:
        super().__init__()
        self.fc1 = nn.Linear(config.hidden, config.mlp * config.hidden)
        self.fc2 = nn.Linear(config.mlp * config.hidden, config.hidden)

    def forward(self, x: Tensor) -> Tensor:
        """Return the same shape."""
        result: Tensor = self.fc2(functional.gelu(self.fc1(x), approximate="tanh"))
        return result


class OasisBlock(nn.Module):
    """A spatial and a temporal half, each shifted, scaled and gated by its frame's condition."""

    def __init__(self, config: DitConfig, attention: AttentionBackend) -> None:
        super().__init__()
        self.hidden, self.attention = config.hidden, attention
        for half in ("s", "t"):
            setattr(self, f"{half}_attn", AttentionProjections(config))
            setattr(self, f"{half}_mlp", Mlp(config))
            modulation = nn.Sequential(nn.SiLU(), nn.Linear(config.hidden, 6 * config.hidden))
            setattr(self, f"{half}_adaLN_modulation", modulation)

    def forward(
        self,
        x_BFND: Tensor,
        condition_BFD: Tensor,
        places: Tensor,
        frames: Tensor,
        past: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Return the tokens, and the temporal keys and values [B, F, 2, N, A, d].

        Args:
            places: angles of the tokens of a frame, [N, d].
            frames: angles of all frames of the window, [P + F, d].
            past: the same of earlier frames; None when there are none.
        """
        x_BFND = self._half("s", x_BFND, condition_BFD, lambda x: self._see_frame(x, places))
        kept: list[Tensor] = []
        x_BFND = self._half(
            "t", x_BFND, condition_BFD, lambda x: self._see_past(x, frames, past, kept)
        )
        return x_BFND, kept[0]

    def _half(
        self, half: str, x: Tensor, condition: Tensor, attend: Callable[[Tensor], Tensor]
    ) -> Tensor:
        modulation = cast(nn.Module, getattr(self, f"{half}_adaLN_modulation"))
        rows: Tensor = modulation(condition)[:, :, None]
        shift, scale, gate, mlp_shift, mlp_scale, mlp_gate = rows.chunk(6, dim=-1)
        x = x + gate * attend(self._normal(x) * (1 + scale) + shift)
        mlp = cast(Mlp, getattr(self, f"{half}_mlp"))
        result: Tensor = x + mlp_gate * mlp(self._normal(x) * (1 + mlp_scale) + mlp_shift)
        return result

    def _see_frame(self, x_BFND: Tensor, places: Tensor) -> Tensor:
        part = cast(AttentionProjections, self.s_attn)
        B, F, N, D = x_BFND.shape
        q, k, v = (y.flatten(0, 1).transpose(1, 2) for y in part.split(x_BFND))  # [B*F, A, N, d]
        mixed = self.attention(turn(q, places), turn(k, places), v)
        result: Tensor = part.to_out(mixed.transpose(1, 2).reshape(B, F, N, D))
        return result

    def _see_past(
        self, x_BFND: Tensor, angles: Tensor, past: Tensor | None, kept: list[Tensor]
    ) -> Tensor:
        part = cast(AttentionProjections, self.t_attn)
        B, F, N, D = x_BFND.shape
        q, k, v = part.split(x_BFND)
        kept.append(torch.stack((k, v), dim=2))
        if past is not None:
            k, v = torch.cat([past[:, :, 0], k], dim=1), torch.cat([past[:, :, 1], v], dim=1)
        # a sequence of frames for each place: [B*N, A, frames, d]
        q, k, v = (y.permute(0, 2, 3, 1, 4).flatten(0, 1) for y in (q, k, v))
        q, k = turn(q, angles[-F:]), turn(k, angles)
        mixed = torch.cat(
            [
                self.attention(q[:, :, f : f + 1], k[:, :, :seen], v[:, :, :seen])
                for f in range(F)
                for seen in [k.shape[2] - F + f + 1]
            ],
            dim=2,
        )
        mixed = mixed.view(B, N, *mixed.shape[1:]).permute(0, 3, 1, 2, 4).reshape(B, F, N, D)
        result: Tensor = part.to_out(mixed)
        return result

    def _normal(self, x: Tensor) -> Tensor:
        return functional.layer_norm(x, (self.hidden,), eps=1e-6)


class PatchEmbed(nn.Module):
    """From latent cells to tokens."""

    def __init__(self, config: DitConfig) -> None:
        super().__init__()
        self.proj = nn.Conv2d(config.channels, config.hidden, config.patch, config.patch)


class TimestepEmbedder(nn.Module):
    """From noise levels to channels."""

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
    """From tokens to latent cells."""

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
            action_BFE: a row of `ACTIONS` for each frame: what was done before it.
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
        """Have all blocks attend by another backend; the model stays the same."""
        for block in self.blocks:
            cast(OasisBlock, block).attention = attention

    @property
    def dtype(self) -> torch.dtype:
        """The type that the weights have."""
        return self.external_cond.weight.dtype

    def _cells(self, patches_BFNC: Tensor) -> Tensor:
        config = self.config
        B, F = patches_BFNC.shape[:2]
        p = config.patch
        cut = patches_BFNC.reshape(B, F, config.rows, config.columns, p, p, config.channels)
        return cut.permute(0, 1, 6, 2, 4, 3, 5).reshape(
            B, F, config.channels, config.height, config.width
        )
