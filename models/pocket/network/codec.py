"""The picture codec: frames to latents and back.

Shapes: B frames, C = 3 colours in [0, 1], H = W = 128 pixels; latents Z = 8 channels on a grid of
h = w = 16 cells, one for each 8 x 8 pixels. The encoder reads every cell alone, so a map that moves
by a whole cell moves its latents exactly. The decoder reads neighbours too, and is trained on noisy
latents, so it repairs small errors of the world model.
"""

from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from reverie.models.pocket.config import CodecConfig


class ResidualBlock(nn.Module):
    """Two 3 x 3 convolutions with a shortcut."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1)
        self.second = nn.Conv2d(width, width, 3, padding=1)
        nn.init.zeros_(self.second.weight)

    def forward(self, x_BChw: Tensor) -> Tensor:
        """Return the refined features; the shape stays."""
        residual: Tensor = self.second(functional.silu(self.first(functional.silu(x_BChw))))
        return x_BChw + residual


class PictureCodec(nn.Module):
    """Encodes frames to normalised latents (each channel with mean 0, deviation 1), and decodes."""

    latent_mean: Tensor
    latent_deviation: Tensor

    def __init__(self, config: CodecConfig) -> None:
        super().__init__()
        self.config = config
        pixels, width = 3 * config.cell_px**2, config.encoder_width
        self.encoder = nn.Sequential(
            nn.PixelUnshuffle(config.cell_px),
            nn.Conv2d(pixels, width, 1),
            nn.SiLU(),
            nn.Conv2d(width, width, 1),
            nn.SiLU(),
            nn.Conv2d(width, config.latent_channels, 1),
        )
        wide = config.decoder_width
        self.decoder = nn.Sequential(
            nn.Conv2d(config.latent_channels, wide, 3, padding=1),
            *(ResidualBlock(wide) for _ in range(config.decoder_blocks)),
            nn.SiLU(),
            nn.Conv2d(wide, 2 * wide, 1),
            nn.SiLU(),
            nn.Conv2d(2 * wide, pixels, 1),
            nn.PixelShuffle(config.cell_px),
        )
        self.register_buffer("latent_mean", torch.zeros(config.latent_channels))
        self.register_buffer("latent_deviation", torch.ones(config.latent_channels))

    def channels_last(self) -> Self:
        """Use the memory layout that convolutions read fastest; the values stay the same."""
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return self

    def encode_raw(self, frames_BCHW: Tensor) -> Tensor:
        """Return latents before normalisation: [B, Z, h, w]."""
        raw: Tensor = self.encoder(frames_BCHW - 0.5)
        return raw

    def encode(self, frames_BCHW: Tensor) -> Tensor:
        """Return normalised latents [B, Z, h, w] of frames with values in [0, 1]."""
        raw_BZhw = self.encode_raw(frames_BCHW).float()
        mean, deviation = self.latent_mean.float(), self.latent_deviation.float()
        return (raw_BZhw - mean[:, None, None]) / deviation[:, None, None]

    def decode(self, latents_BZhw: Tensor) -> Tensor:
        """Return frames [B, 3, H, W] from normalised latents; values may leave [0, 1] a little."""
        frames: Tensor = self.decoder(latents_BZhw)
        return frames + 0.5


def frames_to_tensor(frames_BHWC: Tensor) -> Tensor:
    """Turn uint8 pictures [B, H, W, 3] into colours [B, 3, H, W] in [0, 1]."""
    return frames_BHWC.permute(0, 3, 1, 2).float() / 255


def tensor_to_frames(frames_BCHW: Tensor) -> Tensor:
    """Turn colours [B, 3, H, W] into uint8 pictures [B, H, W, 3]."""
    scaled = frames_BCHW.float().mul(255).round().clamp(0, 255)
    return scaled.to(torch.uint8).permute(0, 2, 3, 1).contiguous()
