"""What a pass over one frame a session is given, and who can run it.

Shapes: B sessions, P frames in the cache, L layers, A heads of size d, N tokens of a frame, Z
latent channels on a grid h x w.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

Room = tuple[Tensor, Tensor]
"""Keys and values [B, A, (P + 1) * N, d] of a layer; the last N are written by each call."""


class FrameRooms:
    """Room for the frame in progress behind its past, for each layer.

    It is scratch memory: a call writes the room before it reads it. So it is no part of the value
    of a state that refers to it, and states that share it do not notice each other.
    """

    __slots__ = ("layers",)

    def __init__(self, layers: tuple[Room, ...]) -> None:
        self.layers = layers


@dataclass(frozen=True, slots=True)
class Past:
    """The cache as attention reads it: made once a frame, used by every call of that frame.

    Attributes:
        frames: P, at most `window - 1`.
        layers: for each layer keys (rotated by place and slot) and values, both [B, A, P * N, d].
        rooms: the same tensors with room for one more frame; None: a call makes room itself.
    """

    frames: int
    layers: tuple[tuple[Tensor, Tensor], ...]
    rooms: FrameRooms | None = None


@dataclass(frozen=True, slots=True)
class FrameCondition:
    """What a row of a pass is told, besides pictures.

    Attributes:
        level: the noise level.
        stance: what the walker does (`walker.stance_of`).
        text_T: the prompt's embedding; told from others by identity.
        told: the guidance scale, for weights that take one.
    """

    level: float
    stance: int
    text_T: Tensor
    told: float = 1.0


class FrameCalls(Protocol):
    """The passes over one frame for each session; see `WorldModel`, which has the same."""

    def predict(
        self,
        noisy_BZhw: Tensor,
        previous_BZhw: Tensor,
        conditions: Sequence[FrameCondition],
        past: Past | None,
    ) -> Tensor:
        """Return the clean latents [B, Z, h, w]."""

    def remember(
        self,
        clean_BZhw: Tensor,
        previous_BZhw: Tensor,
        conditions: Sequence[FrameCondition],
        past: Past | None,
    ) -> Tensor:
        """Return what a cache keeps [B, 2, L, A, N, d]."""

    def read(self, cached_BP2LANd: Tensor) -> Past:
        """Return cached frames as the passes read them."""
