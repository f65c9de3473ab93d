"""Samples a picture from noise, one denoise call at a time: Euler's or Heun's method.

A call is a work unit, and a `SamplingState` is the state between two calls. As in the public
sampler, the network is given the level before churn, and pictures begin as plain normal noise at
any first level.

Shapes: C channels, H x W pixels.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import Tensor

from reverie.models.diamond.config import SamplerConfig

Denoise = Callable[[Tensor, float], Tensor]
"""From a noisy picture and its level to the clean one."""

Noise = Callable[[int], Tensor]
"""Fresh noise of the picture's shape, by the number of the step."""


@dataclass(frozen=True, slots=True)
class SamplingState:
    """A picture in progress.

    Attributes:
        x_CHW: the noisy picture.
        step: the next step, or the one between the two calls of Heun's method.
        guess_CHW: Euler's result of the step, when Heun's second call is due.
        slope_CHW: the slope of that result.
    """

    x_CHW: Tensor
    step: int = 0
    guess_CHW: Tensor | None = None
    slope_CHW: Tensor | None = None

    def done(self, config: SamplerConfig) -> bool:
        """Whether the picture is finished."""
        return self.step == config.steps


def calls_left(drawing: SamplingState, config: SamplerConfig) -> int:
    """Return how many denoise calls are left."""
    left = config.steps - drawing.step
    if not config.heun:
        return left
    return 2 * left - 1 - (drawing.guess_CHW is not None)


def advance(
    drawing: SamplingState, config: SamplerConfig, denoise: Denoise, noise: Noise
) -> SamplingState:
    """Make one denoise call."""
    sigmas = config.sigmas()
    sigma, after = sigmas[drawing.step], sigmas[drawing.step + 1]
    churned = sigma * (1 + _gamma(sigma, config))
    if drawing.guess_CHW is not None:
        assert drawing.slope_CHW is not None, "a guess has a slope"
        second = (drawing.guess_CHW - denoise(drawing.guess_CHW, after)) / after
        moved = drawing.x_CHW + (drawing.slope_CHW + second) / 2 * (after - churned)
        return SamplingState(moved, drawing.step + 1)
    x = drawing.x_CHW
    if churned > sigma:
        added = config.churn_noise * math.sqrt(churned**2 - sigma**2)
        x = x + added * noise(drawing.step)
    slope = (x - denoise(x, sigma)) / churned
    moved = x + slope * (after - churned)
    if config.heun and after > 0:
        return replace(drawing, x_CHW=x, guess_CHW=moved, slope_CHW=slope)
    return SamplingState(moved, drawing.step + 1)


def _gamma(sigma: float, config: SamplerConfig) -> float:
    if not config.churn_low <= sigma <= config.churn_high:
        return 0.0
    return min(config.churn / config.steps, math.sqrt(2) - 1)
