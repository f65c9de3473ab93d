"""The transformer block: block-causal attention over frames, and a convolutional feed-forward.

Shapes: B sessions, F frames in progress, P frames in the cache, N = side * side tokens of a frame,
D channels, A heads of size d. A block takes tokens, modulation and past keys and values, and
returns tokens, keys and values.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from reverie.kernels.attention import AttentionBackend as Backend
from reverie.kernels.attention import sdpa
from reverie.models.pocket.config import WorldConfig
from reverie.models.pocket.network.adapter import BlockAdapter
from reverie.models.pocket.network.rotary import turn


@dataclass(frozen=True, slots=True)
class RotaryAngles:
    """Cosines and sines for one call.

    Attributes:
        place_cosine: [1, N, d/2], for the places of a frame, with its sine `place_sine`.
        slot_cosine: [F, 1, 1, d/2], for the slots of the frames in progress, with `slot_sine`.
    """

    place_cosine: Tensor
    place_sine: Tensor
    slot_cosine: Tensor
    slot_sine: Tensor


@dataclass(frozen=True, slots=True)
class LayerOutput:
    """The output of a block.

    Attributes:
        x_BFND: tokens.
        k_BFAND: keys rotated by place only, as a cache keeps them.
        v_BFAND: values.
    """

    x_BFND: Tensor
    k_BFAND: Tensor
    v_BFAND: Tensor


@dataclass(frozen=True, slots=True)
class TextLayerOutput:
    """The output of a block for text.

    Attributes:
        x_BRTD: tokens of R texts on each session's frames.
        k_BRAtd: rotated keys of these tokens, after those of earlier tokens.
        v_BRAtd: values.
    """

    x_BRTD: Tensor
    k_BRAtd: Tensor
    v_BRAtd: Tensor


class Attention(nn.Module):
    """Every token sees its own frame and the frames before it."""

    def __init__(self, config: WorldConfig) -> None:
        super().__init__()
        self.heads, self.head_size = config.heads, config.head_size
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=False)
        self.q_scale = nn.Parameter(torch.ones(config.head_size))
        self.k_scale = nn.Parameter(torch.ones(config.head_size))
        self.out = nn.Linear(config.width, config.width, bias=False)
        self.attend: Backend = sdpa  # for one frame over the cache; see `WorldModel.attend_with`

    def forward(
        self, x_BFND: Tensor, turns: RotaryAngles, past: tuple[Tensor, Tensor] | None
    ) -> LayerOutput:
        """Attend; `past` holds keys (rotated by place and slot) and values [B, A, P * N, d]."""
        B, frames, N, _ = x_BFND.shape
        qkv = self.qkv(x_BFND).view(B, frames, N, 3, self.heads, self.head_size)
        q, k, v = qkv.permute(3, 0, 1, 4, 2, 5).unbind(0)  # [B, F, A, N, d]
        q = functional.rms_norm(q, (self.head_size,), self.q_scale.to(q.dtype))
        k = functional.rms_norm(k, (self.head_size,), self.k_scale.to(k.dtype))
        q = turn(q, turns.place_cosine, turns.place_sine)
        k = turn(k, turns.place_cosine, turns.place_sine)
        q = turn(q, turns.slot_cosine, turns.slot_sine)
        read = turn(k, turns.slot_cosine, turns.slot_sine)
        mixed = self._attend_one(q, read, v, past) if frames == 1 else self._attend_all(q, read, v)
        return LayerOutput(self.out(mixed), k, v)

    def read(
        self,
        x_BRTD: Tensor,
        angle: tuple[Tensor, Tensor],
        past: tuple[Tensor, Tensor],
        said: tuple[Tensor, Tensor] | None,
        adapter: BlockAdapter,
    ) -> TextLayerOutput:
        """Let texts see the cached frames and their own tokens, causally.

        Args:
            x_BRTD: the new tokens of R texts a session.
            angle: cosine and sine [d/2] of all text.
            past: as in `forward`.
            said: keys and values [B, R, A, S, d] of earlier tokens of the same texts.
            adapter: the products that text adds to the matrices.
        """
        B, R, T, _ = x_BRTD.shape
        qkv = (self.qkv(x_BRTD) + adapter.qkv(x_BRTD)).view(B, R, T, 3, self.heads, self.head_size)
        q, k, v = qkv.permute(3, 0, 1, 4, 2, 5).unbind(0)  # [B, R, A, T, d]
        q = turn(functional.rms_norm(q, (self.head_size,), self.q_scale.to(q.dtype)), *angle)
        k = turn(functional.rms_norm(k, (self.head_size,), self.k_scale.to(k.dtype)), *angle)
        before = 0
        if said is not None:
            before = said[0].shape[3]
            k, v = torch.cat([said[0], k], dim=3), torch.cat([said[1], v], dim=3)
        q = q * self.head_size**-0.5
        flat = q.transpose(1, 2).flatten(2, 3)  # [B, A, R * T, d]
        seen = (flat @ past[0].transpose(2, 3)).view(B, self.heads, R, T, past[0].shape[2])
        later = torch.ones(T, before + T, dtype=torch.bool, device=q.device).triu(before + 1)
        on_texts = (q @ k.transpose(3, 4)).masked_fill(later, float("-inf"))
        weights = torch.cat([seen.transpose(1, 2), on_texts], dim=-1).softmax(dim=-1)
        on_past, on_text = weights[..., : seen.shape[-1]], weights[..., seen.shape[-1] :]
        mixed = on_past.transpose(1, 2).flatten(2, 3) @ past[1]
        mixed = mixed.view(B, self.heads, R, T, self.head_size).transpose(1, 2) + on_text @ v
        mixed = mixed.transpose(2, 3).flatten(3)
        return TextLayerOutput(self.out(mixed) + adapter.out(mixed), k, v)

    def _attend_one(
        self, q: Tensor, k: Tensor, v: Tensor, past: tuple[Tensor, Tensor] | None
    ) -> Tensor:
        """Attend from one frame to the cache and itself: [B, 1, N, D]."""
        keys, values = k[:, 0], v[:, 0]
        if past is not None:
            keys = torch.cat([past[0], keys], dim=2)
            values = torch.cat([past[1], values], dim=2)
        mixed = self.attend(q[:, 0], keys, values)
        return mixed.transpose(1, 2).flatten(2)[:, None]

    def _attend_all(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attend from every frame to itself and the frames before it: [B, F, N, D].

        Plain products, one frame at a time, train faster on a CPU than masked fused attention.
        """
        B, frames, heads, N, d = q.shape
        q = q.transpose(1, 2).reshape(B * heads, frames, N, d) * d**-0.5
        k = k.transpose(1, 2).reshape(B * heads, frames * N, d)
        v = v.transpose(1, 2).reshape(B * heads, frames * N, d)
        made = []
        for frame in range(frames):
            seen = (frame + 1) * N
            scores = torch.bmm(q[:, frame], k[:, :seen].transpose(1, 2))
            made.append(torch.bmm(scores.softmax(dim=-1), v[:, :seen]))
        mixed = torch.stack(made, dim=1).view(B, heads, frames, N, d)
        return mixed.permute(0, 2, 3, 1, 4).flatten(3)


class ConvolutionalFeedForward(nn.Module):
    """A gated feed-forward; a 3 x 3 depthwise convolution moves features on the grid."""

    def __init__(self, config: WorldConfig) -> None:
        super().__init__()
        self.side, self.hidden = config.side, config.hidden
        self.up = nn.Linear(config.width, 2 * config.hidden, bias=False)
        self.spread = nn.Conv2d(config.hidden, config.hidden, 3, padding=1, groups=config.hidden)
        self.down = nn.Linear(config.hidden, config.width, bias=False)

    def forward(self, x_BFND: Tensor) -> Tensor:
        """Return what is added to the tokens; the shape stays."""
        B, frames, N, _ = x_BFND.shape
        value, gate = self.up(x_BFND).chunk(2, dim=-1)
        grid = value.reshape(B * frames, self.side, self.side, self.hidden).permute(0, 3, 1, 2)
        spread = self.spread(grid).permute(0, 2, 3, 1).reshape(B, frames, N, self.hidden)
        result: Tensor = self.down(spread * functional.silu(gate))
        return result

    def lone(self, x: Tensor, adapter: BlockAdapter) -> Tensor:
        """Return what is added to tokens outside the grid: each sees only itself."""
        value, gate = (self.up(x) + adapter.up(x)).chunk(2, dim=-1)
        assert self.spread.bias is not None, "the convolution has a bias"
        spread = torch.addcmul(self.spread.bias, value, self.spread.weight[:, 0, 1, 1])
        inner = spread * functional.silu(gate)
        result: Tensor = self.down(inner) + adapter.down(inner)
        return result


class PocketBlock(nn.Module):
    """Attention and feed-forward, both shifted, scaled and gated by the frame's condition."""

    def __init__(self, config: WorldConfig) -> None:
        super().__init__()
        self.width = config.width
        self.attention = Attention(config)
        self.forward_part = ConvolutionalFeedForward(config)
        self.modulation = nn.Linear(config.condition, 6 * config.width)
        nn.init.zeros_(self.modulation.weight)
        nn.init.zeros_(self.modulation.bias)
        with torch.no_grad():  # gates start open
            self.modulation.bias.view(6, -1)[[2, 5]] = 1.0

    def forward(
        self,
        x_BFND: Tensor,
        condition_BFC: Tensor,
        turns: RotaryAngles,
        past: tuple[Tensor, Tensor] | None,
    ) -> LayerOutput:
        """Run the block; see `Attention.forward` for `past`."""
        modulation = self.modulation(condition_BFC)[:, :, None, :].chunk(6, dim=-1)
        shift, scale, gate, forward_shift, forward_scale, forward_gate = modulation
        normal = functional.layer_norm(x_BFND, (self.width,))
        attended = self.attention(torch.addcmul(shift, normal, 1 + scale), turns, past)
        x_BFND = torch.addcmul(x_BFND, gate, attended.x_BFND)
        normal = functional.layer_norm(x_BFND, (self.width,))
        change = self.forward_part(torch.addcmul(forward_shift, normal, 1 + forward_scale))
        x_BFND = torch.addcmul(x_BFND, forward_gate, change)
        return LayerOutput(x_BFND, attended.k_BFAND, attended.v_BFAND)

    def read(
        self,
        x_BRTD: Tensor,
        condition_C: Tensor,
        angle: tuple[Tensor, Tensor],
        past: tuple[Tensor, Tensor],
        said: tuple[Tensor, Tensor] | None,
        adapter: BlockAdapter,
    ) -> TextLayerOutput:
        """Run the block on text; see `Attention.read`."""
        shift, scale, gate, forward_shift, forward_scale, forward_gate = self.modulation(
            condition_C
        ).chunk(6, dim=-1)
        normal = functional.layer_norm(x_BRTD, (self.width,))
        attended = self.attention.read(
            torch.addcmul(shift, normal, 1 + scale), angle, past, said, adapter
        )
        x_BRTD = torch.addcmul(x_BRTD, gate, attended.x_BRTD)
        normal = functional.layer_norm(x_BRTD, (self.width,))
        change = self.forward_part.lone(
            torch.addcmul(forward_shift, normal, 1 + forward_scale), adapter
        )
        x_BRTD = torch.addcmul(x_BRTD, forward_gate, change)
        return TextLayerOutput(x_BRTD, attended.k_BRAtd, attended.v_BRAtd)
