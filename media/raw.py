"""Media as a client pushes it, unchecked, and as the model gets it."""

from dataclasses import dataclass

import numpy as np
from av import VideoFrame
from numpy.typing import NDArray

from reverie.media.types import Picture

Samples = NDArray[np.float32]
"""Sound [samples, channels] in -1..1."""


@dataclass(frozen=True, slots=True)
class RawVideo:
    """A picture, a frame of a video, or one access unit.

    Attributes:
        data: pixels uint8 [H, W, 3], a decoded frame, or bytes of `codec`.
        codec: of bytes: jpeg, png, webp, gif, rgb24 or h264 (Annex B).
        width: of rgb24; likewise `height`.
        pts_us: when it was taken, on the client's clock.
        last: it ends a clip, or is a single picture.
    """

    data: Picture | VideoFrame | bytes
    pts_us: int
    codec: str = "rgb24"
    width: int = 0
    height: int = 0
    last: bool = False

    @property
    def stands_alone(self) -> bool:
        """Whether it can be dropped without harm to later ones."""
        return self.codec != "h264"

    @property
    def size_bytes(self) -> int:
        """Its memory while it waits."""
        if isinstance(self.data, VideoFrame):
            return self.data.width * self.data.height * 3 // 2
        return self.data.nbytes if isinstance(self.data, np.ndarray) else len(self.data)


@dataclass(frozen=True, slots=True)
class RawAudio:
    """A piece of sound.

    Attributes:
        data: samples, or bytes of `codec`.
        codec: of bytes: opus, pcm16 or pcmf32.
        rate_hz: samples a second; Opus knows its own.
        channels: of pcm.
        pts_us: when its first sample was taken, on the client's clock.
        last: nothing follows it for now.
    """

    data: Samples | bytes
    pts_us: int
    codec: str = "pcmf32"
    rate_hz: int = 0
    channels: int = 0
    last: bool = False

    @property
    def stands_alone(self) -> bool:
        """Whether it can be dropped without harm to later ones: sound has no gaps."""
        return False

    @property
    def size_bytes(self) -> int:
        """Its memory while it waits."""
        return self.data.nbytes if isinstance(self.data, np.ndarray) else len(self.data)


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """What the model gets: a picture [H, W, 3] of its size, or sound [samples, channels]."""

    pts_us: int
    data: Picture | Samples
    last: bool = False
