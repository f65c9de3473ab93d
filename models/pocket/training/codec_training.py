"""Training of the codec: reconstruct frames from latents with a little noise."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from reverie.models.pocket.config import CodecConfig
from reverie.models.pocket.network.codec import PictureCodec, frames_to_tensor
from reverie.models.pocket.simulator.simulator import render
from reverie.models.pocket.training.states import random_states

STREAM = 1  # separates the codec's random numbers from the world model's


@dataclass(frozen=True, slots=True)
class CodecSchedule:
    """How the codec is trained.

    Attributes:
        steps: optimiser steps in all.
        batch: frames a step.
        learning_rate: peak; falls linearly to zero over `steps`.
        warmup: steps of linear rise.
        latent_noise: largest deviation of the noise on normalised latents.
    """

    steps: int = 6000
    batch: int = 32
    learning_rate: float = 2e-3
    warmup: int = 100
    latent_noise: float = 0.3


def reconstruction_loss(made_BCHW: Tensor, true_BCHW: Tensor) -> Tensor:
    """Add absolute, squared and edge errors."""
    error = made_BCHW - true_BCHW
    edges = error.diff(dim=-1).abs().mean() + error.diff(dim=-2).abs().mean()
    return error.abs().mean() + 2 * error.square().mean() + 0.5 * edges


class CodecTraining:
    """The codec, its optimiser, and one step of both."""

    name = "codec"

    def __init__(
        self, config: CodecConfig, schedule: CodecSchedule, seed: int, device: torch.device
    ) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            self.codec = PictureCodec(config)
        self.codec.to(device).channels_last()
        self.schedule, self.seed, self.device = schedule, seed, device
        self.steps = schedule.steps
        self.optimiser = torch.optim.AdamW(
            self.codec.parameters(), lr=schedule.learning_rate, betas=(0.9, 0.95), weight_decay=0.01
        )

    def _frames(self, step: int) -> Tensor:
        rng = np.random.default_rng([self.seed, STREAM, step])
        pictures = torch.from_numpy(render(random_states(rng, self.schedule.batch)))
        return frames_to_tensor(pictures.to(self.device))

    def _noise(self, step: int, like: Tensor) -> Tensor:
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + step)
        size = torch.rand(len(like), 1, 1, 1, generator=generator) * self.schedule.latent_noise
        return (size * torch.randn(like.shape, generator=generator)).to(like.device)

    def train_step(self, step: int) -> Mapping[str, float]:
        """Run one step; reports the loss and the PSNR of the noisy round trip."""
        schedule = self.schedule
        rise = min(1.0, (step + 1) / schedule.warmup)
        self.optimiser.param_groups[0]["lr"] = (
            schedule.learning_rate * rise * (1 - step / schedule.steps)
        )
        frames_BCHW = self._frames(step)
        with torch.autocast(self.device.type, torch.bfloat16):
            raw_BZhw = self.codec.encode_raw(frames_BCHW).float()
            deviation, mean = torch.std_mean(raw_BZhw, dim=(0, 2, 3))
            latents = (raw_BZhw - mean[:, None, None]) / (deviation[:, None, None] + 1e-4)
            made_BCHW = self.codec.decode(latents + self._noise(step, latents)).float()
        loss = reconstruction_loss(made_BCHW, frames_BCHW)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.codec.parameters(), 1.0)
        self.optimiser.step()
        self._follow_statistics(mean.detach(), deviation.detach(), step)
        error = functional.mse_loss(made_BCHW.detach().clamp(0, 1), frames_BCHW)
        return {"loss": loss.item(), "psnr": -10 * error.log10().item()}

    def _follow_statistics(self, mean: Tensor, deviation: Tensor, step: int) -> None:
        weight = max(0.01, 1 / (step + 1))
        self.codec.latent_mean.lerp_(mean, weight)
        self.codec.latent_deviation.lerp_(deviation, weight)

    def state_dict(self) -> dict[str, Any]:
        """Return weights and optimiser."""
        return {"codec": self.codec.state_dict(), "optimiser": self.optimiser.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self.codec.load_state_dict(state["codec"])
        self.optimiser.load_state_dict(state["optimiser"])
