"""The Oasis picture codec: a transformer on cells of 20 x 20 pixels, a picture at a time.

Shapes: B pictures, N cells of a picture, D channels, Z latent channels on a grid h x w, H x W
pixels. Names of parameters are the public ones.
"""

from torch import Tensor, nn
from torch.nn import functional

from reverie.kernels.attention import AttentionBackend, sdpa
from reverie.models.oasis.config import VaeConfig
from reverie.models.oasis.network.rotary import place_angles, rotate

MLP = 4


class VaeAttention(nn.Module):
    """Attention over all cells; half of each head has rotary positions."""

    def __init__(self, config: VaeConfig) -> None:
        super().__init__()
        self.config = config
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.proj = nn.Linear(config.width, config.width)
        self.attention: AttentionBackend = sdpa  # see `OasisVae.attend_with`

    def forward(self, x_BND: Tensor) -> Tensor:
        """Return the same shape."""
        config = self.config
        B, N, D = x_BND.shape
        size = D // config.heads
        q, k, v = self.qkv(x_BND).view(B, N, 3, config.heads, size).permute(2, 0, 3, 1, 4)
        cells = config.rows * config.columns
        angles = place_angles(config.rows, config.columns, size // 4, cells / 2)
        mixed = self.attention(rotate(q, angles), rotate(k, angles), v)
        result: Tensor = self.proj(mixed.transpose(1, 2).reshape(B, N, D))
        return result


class VaeMlp(nn.Module):
    """A feed-forward with the exact GELU."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, MLP * width)
        self.fc2 = nn.Linear(MLP * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return the same shape."""
        result: Tensor = self.fc2(functional.gelu(self.fc1(x)))
        return result


class VaeBlock(nn.Module):
    """Attention and feed-forward behind norms."""

    def __init__(self, config: VaeConfig) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(config.width, eps=1e-6)
        self.attn = VaeAttention(config)
        self.norm2 = nn.LayerNorm(config.width, eps=1e-6)
        self.mlp = VaeMlp(config.width)

    def forward(self, x_BND: Tensor) -> Tensor:
        """Return the same shape."""
        x_BND = x_BND + self.attn(self.norm1(x_BND))
        result: Tensor = x_BND + self.mlp(self.norm2(x_BND))
        return result


class VaePatchEmbed(nn.Module):
    """From pixels to cells."""

    def __init__(self, config: VaeConfig) -> None:
        super().__init__()
        self.proj = nn.Conv2d(3, config.width, config.patch, config.patch)


class OasisVae(nn.Module):
    """Pictures to latents and back."""

    def __init__(self, config: VaeConfig) -> None:
        super().__init__()
        self.config = config
        self.patch_embed = VaePatchEmbed(config)
        self.encoder = nn.ModuleList(VaeBlock(config) for _ in range(config.encoder))
        self.enc_norm = nn.LayerNorm(config.width, eps=1e-6)
        self.quant_conv = nn.Linear(config.width, 2 * config.latent)
        self.post_quant_conv = nn.Linear(config.latent, config.width)
        self.decoder = nn.ModuleList(VaeBlock(config) for _ in range(config.decoder))
        self.dec_norm = nn.LayerNorm(config.width, eps=1e-6)
        self.predictor = nn.Linear(config.width, 3 * config.patch**2)

    def encode(self, pictures_BCHW: Tensor) -> Tensor:
        """Return scaled latents [B, Z, h, w] of pictures in 0..1: the mean, nothing is drawn."""
        x = self.patch_embed.proj(pictures_BCHW.to(self.predictor.weight.dtype) * 2 - 1)
        x = x.flatten(2).transpose(1, 2)
        for block in self.encoder:
            x = block(x)
        mean: Tensor = self.quant_conv(self.enc_norm(x)).chunk(2, dim=-1)[0]
        config = self.config
        grid = mean.transpose(1, 2).reshape(-1, config.latent, config.rows, config.columns)
        return grid.float() * config.scale

    def decode(self, latents_BZhw: Tensor) -> Tensor:
        """Return pictures [B, 3, H, W], about 0..1 and not clamped, of scaled latents."""
        config, p = self.config, self.config.patch
        cells = (latents_BZhw / config.scale).flatten(2).transpose(1, 2)
        x = self.post_quant_conv(cells.to(self.predictor.weight.dtype))
        for block in self.decoder:
            x = block(x)
        patches: Tensor = self.predictor(self.dec_norm(x)).float()
        cut = patches.reshape(-1, config.rows, config.columns, 3, p, p)
        pictures = cut.permute(0, 3, 1, 4, 2, 5).reshape(-1, 3, config.rows * p, config.columns * p)
        return pictures / 2 + 0.5

    def attend_with(self, attention: AttentionBackend) -> None:
        """Have all blocks attend by another backend; the model stays the same."""
        for part in self.modules():
            if isinstance(part, VaeAttention):
                part.attention = attention
