"""Sizes of DIAMOND's networks and of its sampler."""

from dataclasses import dataclass, replace

import torch

from reverie.models.diamond.atari import FULL, keys_of


@dataclass(frozen=True, slots=True)
class UNetConfig:
    """A network that predicts a picture.

    Attributes:
        channels: of each level, the finest first.
        depths: residual blocks of each level.
        attention: whether a level's blocks attend.
        condition: channels of the condition.
        steps: past pictures and actions that it takes.
        actions: kinds of actions; 0 for the upsampler, which has none.
        multi_hot: several actions may be active at once.
        noisy_past: it takes the noise level of the past pictures as an input; 0 without noise.
        extra: channels of another input picture (the upsampler's low resolution).
        sigma_offset: noise that every picture is assumed to have.
    """

    channels: tuple[int, ...] = (64, 64, 64, 64)
    depths: tuple[int, ...] = (2, 2, 2, 2)
    attention: tuple[bool, ...] = (False, False, False, False)
    condition: int = 256
    steps: int = 4
    actions: int = 18
    multi_hot: bool = False
    noisy_past: bool = False
    extra: int = 0
    sigma_offset: float = 0.3
    sigma_data: float = 0.5


@dataclass(frozen=True, slots=True)
class SamplerConfig:
    """How a picture is made from noise.

    Attributes:
        steps: denoise calls; Heun's method makes two of each but the last.
        heun: Heun's method, else Euler's.
        churn: fresh noise, spread over the steps whose level is between `churn_low` and
            `churn_high`, scaled by `churn_noise`.
        past_sigma: noise that is added to the pictures of the past, 0 for none.
    """

    steps: int = 3
    sigma_min: float = 0.002
    sigma_max: float = 5.0
    rho: float = 7.0
    heun: bool = False
    churn: float = 0.0
    churn_low: float = 0.0
    churn_high: float = float("inf")
    churn_noise: float = 1.0
    past_sigma: float = 0.0

    def sigmas(self) -> tuple[float, ...]:
        """Return the levels of the steps and a last 0 (Karras et al. 2022, eq. 5).

        They are rounded as in the public sampler, because a level that is meant to be
        `churn_low` or `churn_high` may come out on either side of it.
        """
        low, high = self.sigma_min ** (1 / self.rho), self.sigma_max ** (1 / self.rho)
        levels = (high + torch.linspace(0, 1, self.steps) * (low - high)) ** self.rho
        return (*levels.tolist(), 0.0)


@dataclass(frozen=True, slots=True)
class GameConfig:
    """A game: its world model, and the upsampler if there is one.

    Attributes:
        height: pixels of the world's pictures.
        factor: how much larger the upsampler makes them; 1 without one.
        keys: the keys of the game. With `multi_hot` actions they are the first numbers of a row,
            followed by the positions of the mouse.
        actions: names of the actions by their number, in a game that takes one at a time; see
            `atari.py` for the keys that make each.
        opposites: keys of which only the one pressed first counts.
        fine: a slower sampler that a session may choose (`quality`); None without one.
        fine_upsampling: the slower sampler of the upsampler.
    """

    name: str
    height: int
    width: int
    rate_hz: float
    keys: tuple[str, ...]
    world: UNetConfig
    sampler: SamplerConfig
    upsampler: UNetConfig | None = None
    upsampling: SamplerConfig | None = None
    factor: int = 1
    actions: tuple[str, ...] = ()
    opposites: tuple[frozenset[str], ...] = ()
    fine: SamplerConfig | None = None
    fine_upsampling: SamplerConfig | None = None


ATARI = GameConfig(
    "atari", 64, 64, 15.0, keys_of(FULL), UNetConfig(), SamplerConfig(), actions=FULL
)

_CSGO_KEYS = (
    "w", "a", "s", "d", "space", "ctrl", "shift", "1", "2", "3", "r", "left_click", "right_click",
)  # fmt: skip
_X = (2.0, 4.0, 10.0, 20.0, 30.0, 60.0, 100.0, 200.0, 300.0, 500.0, 1000.0)
_Y = (2.0, 4.0, 10.0, 20.0, 50.0, 100.0, 200.0)
MOUSE_X = (*(-place for place in reversed(_X)), 0.0, *_X)
MOUSE_Y = (*(-place for place in reversed(_Y)), 0.0, *_Y)
"""Movements of the mouse in a step, as in the training data; one of each is active."""

_OPPOSITES = (
    frozenset("ws"), frozenset("ad"), frozenset("12"), frozenset("13"), frozenset("23"),
)  # fmt: skip
_UPSAMPLING = SamplerConfig(
    steps=1, sigma_min=1.0, heun=True, churn=10.0, churn_low=1.0, churn_high=5.0, churn_noise=0.9
)
CSGO = GameConfig(
    "csgo",
    30,
    56,
    16.0,
    _CSGO_KEYS,
    UNetConfig(
        channels=(128, 256, 512, 1024),
        attention=(False, False, True, True),
        condition=2048,
        actions=51,
        multi_hot=True,
        noisy_past=True,
        sigma_offset=0.1,
    ),
    SamplerConfig(steps=1, past_sigma=0.005),
    UNetConfig(
        channels=(64, 64, 128, 256),
        attention=(False, False, False, True),
        condition=2048,
        steps=1,
        actions=0,
        noisy_past=True,
        extra=3,
        sigma_offset=0.1,
    ),
    _UPSAMPLING,
    factor=5,
    opposites=_OPPOSITES,
    fine=SamplerConfig(steps=3, past_sigma=0.005),
    fine_upsampling=replace(_UPSAMPLING, steps=10, heun=False),
)
