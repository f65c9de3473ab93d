"""Noise levels of flow matching: the noise at a timestep, and the estimate of x0.

A latent at level s is (1 - s) * x0 + s * noise; the network predicts noise - x0. Timesteps run to
1000 and are rounded to the nearest in a table, so that t = 0 has a little noise.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

TABLE = 1000


@dataclass(frozen=True, slots=True)
class FlowSchedule:
    """The table of levels that a shift gives.

    Attributes:
        sigmas: levels, from 1 down, [TABLE].
        timesteps: 1000 * sigmas.
    """

    sigmas: Tensor
    timesteps: Tensor

    @classmethod
    def of(cls, shift: float) -> "FlowSchedule":
        """Make the table of a shift; 1 leaves the levels evenly spread."""
        even = torch.linspace(1.0, 0.0, TABLE + 1)[:-1]
        sigmas = shift * even / (1 + (shift - 1) * even)
        return cls(sigmas, sigmas * TABLE)

    def warp(self, levels: tuple[int, ...]) -> tuple[float, ...]:
        """Return the timesteps that a list of unshifted ones means under this shift.

        Raises:
            ValueError: a level is outside of 0 to 1000.
        """
        if not all(0 <= level <= TABLE for level in levels):
            raise ValueError(f"levels must be between 0 and {TABLE}, not {levels}")
        with_zero = torch.cat([self.timesteps, torch.zeros(1)])
        return tuple(float(with_zero[TABLE - level]) for level in levels)

    def from_strength(self, levels: tuple[int, ...], strength: float) -> tuple[float, ...]:
        """Return the timesteps that repaint a latent by `strength`, from 0 to 1.

        The first says how much noise it gets: that of level 1000 * strength, under the shift. Of
        the usual levels those below follow, so that half the strength costs about half the calls.
        None are left of a strength of 0.
        """
        start = round(TABLE * strength)
        return self.warp((start, *(level for level in levels if level < start))) if start else ()

    def sigma(self, timestep: float) -> float:
        """Return the level whose timestep is nearest."""
        return float(self.sigmas[(self.timesteps - timestep).abs().argmin()])

    def clean(self, x_t: Tensor, flow: Tensor, timestep: float) -> Tensor:
        """Return x0 from a noisy latent and the predicted flow; computed in float64."""
        return (x_t.double() - self.sigma(timestep) * flow.double()).to(flow.dtype)

    def noised(self, x_0: Tensor, noise: Tensor, timestep: float) -> Tensor:
        """Return x0 with as much noise as the timestep says."""
        sigma = self.sigma(timestep)
        return ((1 - sigma) * x_0 + sigma * noise).to(x_0.dtype)
