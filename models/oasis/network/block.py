"""One block of the Oasis transformer: attention over a frame, then over the frames of a place."""

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from reverie.kernels.attention import AttentionBackend
from reverie.models.oasis.config import DitConfig
from reverie.models.oasis.network.rotary import rotate


class AttentionProjections(nn.Module):
    """Projections of one attention; the caller chooses what attends to what."""

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
    """A feed-forward network."""

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
            past: temporal keys and values of earlier frames; None when there are none.
        """
        x_BFND = self._half("s", x_BFND, condition_BFD, lambda x: self._attend_frame(x, places))
        kept: list[Tensor] = []
        x_BFND = self._half(
            "t", x_BFND, condition_BFD, lambda x: self._attend_past(x, frames, past, kept)
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

    def _attend_frame(self, x_BFND: Tensor, places: Tensor) -> Tensor:
        part = cast(AttentionProjections, self.s_attn)
        B, F, N, D = x_BFND.shape
        q, k, v = (y.flatten(0, 1).transpose(1, 2) for y in part.split(x_BFND))  # [B*F, A, N, d]
        mixed = self.attention(rotate(q, places), rotate(k, places), v)
        result: Tensor = part.to_out(mixed.transpose(1, 2).reshape(B, F, N, D))
        return result

    def _attend_past(
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
        q, k = rotate(q, angles[-F:]), rotate(k, angles)
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
