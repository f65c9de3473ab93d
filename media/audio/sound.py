"""Sound between model and client, before and after encoding.

Shape legend: N samples, C channels (1 or 2). All times are media time in microseconds on the
session's output clock, the same as the pictures'.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from reverie.media.errors import UnsupportedSoundError

Sound = NDArray[np.int16]
"""Samples [N, C]."""

OPUS_HZ = 48_000
PACKET_US = 20_000
"""How long a packet lasts, whatever its codec; the last one before a gap may be shorter."""


class AudioCodec(StrEnum):
    """The codecs of sound that a client can ask for."""

    OPUS = "opus"
    PCM16 = "pcm16"
    """Little-endian samples at the stream's own rate, channels interleaved."""


@dataclass(frozen=True, slots=True)
class SoundShape:
    """Samples a second, and how many channels."""

    rate_hz: int
    channels: int

    def check(self, samples_NC: Sound) -> None:
        """Accept samples of this shape.

        Raises:
            UnsupportedSoundError: they are not int16 [N, C].
        """
        shape = samples_NC.shape
        if samples_NC.dtype != np.int16 or len(shape) != 2 or shape[1] != self.channels:
            raise UnsupportedSoundError(
                f"samples are int16 [N, {self.channels}], not {samples_NC.dtype} {list(shape)}"
            )

    def duration_us(self, samples: int) -> int:
        """Return how long a number of samples lasts."""
        return round(samples * 1_000_000 / self.rate_hz)


@dataclass(frozen=True, slots=True)
class SoundFormat:
    """How to decode what follows.

    Attributes:
        codec: `opus` or `pcm16`.
        description: the codec's own header, for containers: an `OpusHead`; empty for samples.
    """

    codec: AudioCodec
    rate_hz: int
    channels: int
    description: bytes = b""


@dataclass(frozen=True, slots=True)
class SoundTag:
    """The origin of sound and when it is played.

    Attributes:
        pts_us: of the first sample. A later beginning than the end of the sound before it leaves
            a gap; an earlier one does not occur.
        chunk: the loop's chunk that it belongs to.
        step: the unit that produced it.
        discontinuity: it does not follow from the sound before it.
        last: it ends its chunk.
    """

    pts_us: int
    chunk: int = 0
    step: int = 0
    discontinuity: bool = False
    last: bool = False


@dataclass(frozen=True, slots=True)
class SoundPacket:
    """A packet as delivered: 20 ms, or less of raw samples before a gap.

    Attributes:
        samples: that it holds of each channel, at the rate of its format.
        discontinuity: it does not follow from the packet before it: there was a cut, a gap or a
            loss. Its `pts_us` says where it belongs.
        last: nothing more comes of its chunk now; less than a packet may come with the next one.
        dropped: packets lost just before this one, because encoding could not keep up.
    """

    data: bytes
    pts_us: int
    duration_us: int
    samples: int
    format: SoundFormat
    chunk: int
    step: int
    discontinuity: bool = False
    last: bool = False
    dropped: int = 0


DeliverSound = Callable[[SoundPacket], None]
"""Takes one packet, at once, on the event loop. It bounds what it keeps."""
