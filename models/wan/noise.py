"""The noise of a block: from the session's seed, or from a recording."""

from typing import Protocol

from torch import Tensor

from reverie.models.contract.seeds import normal


class Noise(Protocol):
    """Draws float32 standard normal noise; equal arguments return equal noise."""

    def first(self, seed: int, frame: int, shape: tuple[int, ...]) -> Tensor:
        """Return the noise that the block at latent frame `frame` starts from."""

    def again(self, seed: int, frame: int, step: int, shape: tuple[int, ...]) -> Tensor:
        """Return the fresh noise that is added before denoise call `step` of that block."""


class SeededNoise:
    """Noise as a function of seed, frame and step."""

    def first(self, seed: int, frame: int, shape: tuple[int, ...]) -> Tensor:
        """Return the noise for the first denoise call."""
        return normal(seed, "block", frame, shape)

    def again(self, seed: int, frame: int, step: int, shape: tuple[int, ...]) -> Tensor:
        """Return the noise for a later one."""
        return normal(seed, f"again {step}", frame, shape)
