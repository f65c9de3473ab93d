"""DIAMOND's U-Net: residual blocks whose norms are scaled and shifted by the condition.

Shapes: B sessions, C channels, D channels of the condition, H x W pixels. Names of parameters are
the public ones.
"""

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from reverie.kernels.attention import AttentionBackend, sdpa
from reverie.models.diamond.config import UNetConfig

GROUP = 32
HEAD = 8
EPS = 1e-5


def groups_of(channels: int) -> int:
    """Return how many groups a norm of so many channels has."""
    return max(1, channels // GROUP)


class GroupNorm(nn.Module):
    """A plain norm."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(groups_of(channels), channels, EPS)

    def forward(self, x: Tensor) -> Tensor:
        """Return the same shape."""
        result: Tensor = self.norm(x)
        return result


class AdaGroupNorm(nn.Module):
    """A norm that the condition scales and shifts."""

    def __init__(self, channels: int, condition: int) -> None:
        super().__init__()
        self.groups = groups_of(channels)
        self.linear = nn.Linear(condition, 2 * channels)

    def forward(self, x_BCHW: Tensor, condition_BD: Tensor) -> Tensor:
        """Return the same shape."""
        normal = functional.group_norm(x_BCHW, self.groups, eps=EPS)
        rows: Tensor = self.linear(condition_BD)[:, :, None, None]
        scale, shift = rows.chunk(2, dim=1)
        return normal * (1 + scale) + shift


class SelfAttention2d(nn.Module):
    """Every pixel sees every other."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.heads = max(1, channels // HEAD)
        self.norm = GroupNorm(channels)
        self.qkv_proj = nn.Conv2d(channels, 3 * channels, 1)
        self.out_proj = nn.Conv2d(channels, channels, 1)
        self.attention: AttentionBackend = sdpa  # see `UNet.attend_with`

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """Return the same shape."""
        B, C, H, W = x_BCHW.shape
        normal_BCHW = self.norm(x_BCHW)  # also what the result is added to: not a residual of x
        qkv = self.qkv_proj(normal_BCHW).view(B, 3 * self.heads, C // self.heads, H * W)
        q, k, v = qkv.transpose(2, 3).chunk(3, dim=1)
        mixed = self.attention(q, k, v)
        result: Tensor = normal_BCHW + self.out_proj(mixed.transpose(2, 3).reshape(B, C, H, W))
        return result


class ResBlock(nn.Module):
    """Two convolutions with a residual connection."""

    def __init__(self, inside: int, out: int, condition: int, attends: bool) -> None:
        super().__init__()
        self.proj: nn.Module = nn.Conv2d(inside, out, 1) if inside != out else nn.Identity()
        self.norm1 = AdaGroupNorm(inside, condition)
        self.conv1 = nn.Conv2d(inside, out, 3, padding=1)
        self.norm2 = AdaGroupNorm(out, condition)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1)
        self.attn: nn.Module = SelfAttention2d(out) if attends else nn.Identity()

    def forward(self, x_BCHW: Tensor, condition_BD: Tensor) -> Tensor:
        """Return the out channels."""
        past = self.proj(x_BCHW)
        x = self.conv1(functional.silu(self.norm1(x_BCHW, condition_BD)))
        x = self.conv2(functional.silu(self.norm2(x, condition_BD)))
        result: Tensor = self.attn(x + past)
        return result


class ResBlocks(nn.Module):
    """The blocks of one level."""

    def __init__(
        self, inside: Sequence[int], out: Sequence[int], condition: int, attends: bool
    ) -> None:
        super().__init__()
        self.resblocks = nn.ModuleList(
            ResBlock(a, b, condition, attends) for a, b in zip(inside, out, strict=True)
        )

    def forward(
        self, x: Tensor, condition_BD: Tensor, skips: Sequence[Tensor] | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """Return the last output and all; `skips` are concatenated to the blocks' inputs."""
        made = []
        for number, block in enumerate(self.resblocks):
            x = block(x if skips is None else torch.cat((x, skips[number]), dim=1), condition_BD)
            made.append(x)
        return x, made


class Downsample(nn.Module):
    """Half the pixels along each side."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, stride=2, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """Return [B, C, H / 2, W / 2]."""
        result: Tensor = self.conv(x)
        return result


class Upsample(nn.Module):
    """Twice the pixels along each side."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """Return [B, C, 2 H, 2 W]."""
        result: Tensor = self.conv(functional.interpolate(x, scale_factor=2.0, mode="nearest"))
        return result


class UNet(nn.Module):
    """Down, across, up; what went down joins what comes up."""

    def __init__(self, config: UNetConfig) -> None:
        super().__init__()
        self.levels = len(config.channels)
        down, up = [], []
        for level, (width, depth) in enumerate(zip(config.channels, config.depths, strict=True)):
            above = config.channels[max(0, level - 1)]
            attends = config.attention[level]
            condition = config.condition
            down.append(
                ResBlocks([above] + [width] * (depth - 1), [width] * depth, condition, attends)
            )
            up.append(
                ResBlocks(
                    [2 * width] * depth + [width + above],
                    [width] * depth + [above],
                    condition,
                    attends,
                )
            )
        deepest = config.channels[-1]
        self.d_blocks = nn.ModuleList(down)
        self.mid_blocks = ResBlocks([deepest] * 2, [deepest] * 2, config.condition, attends=True)
        self.u_blocks = nn.ModuleList(reversed(up))
        finer = config.channels[:-1]
        self.downsamples = nn.ModuleList([nn.Identity(), *(Downsample(c) for c in finer)])
        self.upsamples = nn.ModuleList([nn.Identity(), *(Upsample(c) for c in reversed(finer))])

    def forward(self, x_BCHW: Tensor, condition_BD: Tensor) -> Tensor:
        """Return the channels of the finest level, the same H x W."""
        H, W = x_BCHW.shape[-2:]
        step = 2 ** (self.levels - 1)
        padded = (math.ceil(W / step) * step - W, math.ceil(H / step) * step - H)
        x: Tensor = functional.pad(x_BCHW, (0, padded[0], 0, padded[1]))
        passed: list[list[Tensor]] = []
        for block, downsample in zip(self.d_blocks, self.downsamples, strict=True):
            entered = downsample(x)
            x, made = cast(ResBlocks, block)(entered, condition_BD)
            passed.append([entered, *made])
        x, _ = self.mid_blocks(x, condition_BD)
        for block, upsample, skips in zip(
            self.u_blocks, self.upsamples, reversed(passed), strict=True
        ):
            x, _ = cast(ResBlocks, block)(upsample(x), condition_BD, skips[::-1])
        return x[..., :H, :W]

    def attend_with(self, attention: AttentionBackend) -> None:
        """Have every level attend by another backend; the model stays the same."""
        for part in self.modules():
            if isinstance(part, SelfAttention2d):
                part.attention = attention
