"""DIAMOND's denoiser: EDM preconditioning of a U-Net with past pictures and actions as inputs.

Source: Karras et al. 2022 (preconditioning), with the noise `sigma_offset` that every picture is
assumed to have. Every result is rounded down to the 256 values of a picture, as in training.

Shapes: B sessions, P past pictures, C channels of a picture, H x W pixels, E numbers of an action.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from reverie.models.diamond.config import UNetConfig
from reverie.models.diamond.network.unet import GroupNorm, UNet

PICTURE = 3


@dataclass(frozen=True, slots=True)
class Conditioners:
    """The factors of EDM at one level (`sigma`, after the offset)."""

    c_in: float
    c_out: float
    c_skip: float
    c_noise: float

    @classmethod
    def at(cls, sigma: float, config: UNetConfig) -> "Conditioners":
        """Return the factors at a noise level."""
        total = math.sqrt(sigma**2 + config.sigma_offset**2)
        data = config.sigma_data
        skip = data**2 / (total**2 + data**2)
        return cls(
            c_in=1 / math.sqrt(total**2 + data**2),
            c_out=total * math.sqrt(skip),
            c_skip=skip,
            c_noise=math.log(total) / 4,
        )


class FourierFeatures(nn.Module):
    """Maps a number to cosines and sines of fixed random frequencies."""

    weight: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randn(1, channels // 2))

    def forward(self, x_B: Tensor) -> Tensor:
        """Return [B, channels]."""
        angles = 2 * math.pi * x_B[:, None] @ self.weight
        return torch.cat([angles.cos(), angles.sin()], dim=-1)


class InnerModel(nn.Module):
    """The network without preconditioning, with the public parameter names."""

    def __init__(self, config: UNetConfig) -> None:
        super().__init__()
        self.config = config
        condition, first = config.condition, config.channels[0]
        self.noise_emb = FourierFeatures(condition)
        if config.noisy_past:
            self.noise_cond_emb = FourierFeatures(condition)
        if config.actions:
            each = condition // config.steps
            self.act_emb = nn.Sequential(nn.Embedding(config.actions, each), nn.Flatten())
        self.cond_proj = nn.Sequential(
            nn.Linear(condition, condition), nn.SiLU(), nn.Linear(condition, condition)
        )
        inside = (config.steps + 1) * PICTURE + config.extra
        self.conv_in = nn.Conv2d(inside, first, 3, padding=1)
        self.unet = UNet(config)
        self.norm_out = GroupNorm(first)
        self.conv_out = nn.Conv2d(first, PICTURE, 3, padding=1)

    def forward(
        self,
        scaled_BCHW: Tensor,
        c_noise_B: Tensor,
        past_BCHW: Tensor,
        actions: Tensor | None,
        c_noise_past_B: Tensor | None = None,
    ) -> Tensor:
        """Return the prediction, before `c_out` and `c_skip`.

        Args:
            scaled_BCHW: the noisy picture, times c_in.
            past_BCHW: past pictures (and the upsampler's small one) along the channels, scaled.
            actions: ids [B, P], or 0/1 rows [B, P, E]; None without actions.
            c_noise_past_B: noise of the past; None when there is none.
        """
        condition = self.noise_emb(c_noise_B)
        if self.config.noisy_past:
            told = torch.zeros_like(c_noise_B) if c_noise_past_B is None else c_noise_past_B
            condition = condition + self.noise_cond_emb(told)
        if actions is not None:
            condition = condition + self._embedded(actions)
        condition_BD = self.cond_proj(condition)
        x = self.conv_in(torch.cat((past_BCHW, scaled_BCHW), dim=1))
        x = self.unet(x, condition_BD)
        result: Tensor = self.conv_out(functional.silu(self.norm_out(x)))
        return result

    def _embedded(self, actions: Tensor) -> Tensor:
        if self.config.multi_hot:
            table = self.act_emb[0].weight
            assert isinstance(table, Tensor)
            return (actions.to(table.dtype) @ table).flatten(1)
        result: Tensor = self.act_emb(actions)
        return result


class Denoiser(nn.Module):
    """A world model or an upsampler: predicts the clean picture from a noisy one."""

    def __init__(self, config: UNetConfig) -> None:
        super().__init__()
        self.config = config
        self.inner_model = InnerModel(config)

    def forward(
        self,
        noisy_BCHW: Tensor,
        sigma: float,
        past_BPCHW: Tensor,
        actions: Tensor | None,
        past_sigma: float = 0.0,
    ) -> Tensor:
        """Return the picture without noise, -1 to 1, in steps of 2 / 255.

        Args:
            past_BPCHW: -1 to 1, oldest first.
        """
        factors, B = Conditioners.at(sigma, self.config), len(noisy_BCHW)
        told = None
        if past_sigma:
            told = torch.full((B,), math.log(past_sigma) / 4, device=noisy_BCHW.device)
        output: Tensor = self.inner_model(
            noisy_BCHW * factors.c_in,
            torch.full((B,), factors.c_noise, device=noisy_BCHW.device),
            past_BPCHW.flatten(1, 2) / self.config.sigma_data,
            actions,
            told,
        )
        clean = factors.c_skip * noisy_BCHW + factors.c_out * output
        steps = clean.clamp(-1, 1).add(1).div(2).mul(255).byte()
        return steps.float().div(255).mul(2).sub(1)
