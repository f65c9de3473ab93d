"""Opus by libopus: 48 kHz, packets of 20 ms, from sound of any rate (RFC 6716)."""

from dataclasses import dataclass
from functools import cache

import av
import numpy as np

from reverie.media.audio.sound import OPUS_HZ, PACKET_US, AudioCodec, Sound, SoundFormat, SoundShape
from reverie.media.errors import EncodeError

PACKET_SAMPLES = OPUS_HZ * PACKET_US // 1_000_000
BITS_A_CHANNEL = 48_000

_LAYOUTS = {1: "mono", 2: "stereo"}


class OpusEncoder:
    """Takes sound in pieces of any length; returns a packet for every 20 ms."""

    def __init__(self, shape: SoundShape) -> None:
        """Open an encoder.

        Raises:
            EncodeError: libopus is missing, or refuses.
        """
        self._layout = _LAYOUTS[shape.channels]
        self._rate_hz = shape.rate_hz
        self._channels = shape.channels
        self._context = _open(self._layout, shape.channels)
        self._resampler = av.AudioResampler(format="s16", layout=self._layout, rate=OPUS_HZ)
        self._waiting = np.zeros((0, shape.channels), np.int16)  # at 48 kHz, less than a packet
        # How far libopus looks ahead: the last sound comes out with the packet after it.
        self._lookahead = int.from_bytes((self._context.extradata or b"\0" * 12)[10:12], "little")
        self.format = SoundFormat(
            AudioCodec.OPUS, OPUS_HZ, shape.channels, bytes(self._context.extradata or b"")
        )

    def encode(self, samples_NC: Sound) -> list[bytes]:
        """Return the packets that are full with these samples.

        Raises:
            EncodeError: libopus failed.
        """
        self._waiting = np.concatenate((self._waiting, self._resampled(samples_NC)))
        return self._full_packets()

    def finish(self) -> list[bytes]:
        """End the stream; return waiting sound, padded with silence to whole packets."""
        rest = np.concatenate((self._waiting, self._drained()))
        if not len(rest):
            return []
        silence = self._lookahead + -(len(rest) + self._lookahead) % PACKET_SAMPLES
        self._waiting = np.pad(rest, ((0, silence), (0, 0)))
        return self._full_packets()

    def _full_packets(self) -> list[bytes]:
        whole = len(self._waiting) // PACKET_SAMPLES * PACKET_SAMPLES
        ready, self._waiting = self._waiting[:whole], self._waiting[whole:]
        return [
            self._packet(ready[start : start + PACKET_SAMPLES])
            for start in range(0, whole, PACKET_SAMPLES)
        ]

    def _packet(self, samples_NC: Sound) -> bytes:
        try:
            packets = self._context.encode(self._frame(samples_NC, OPUS_HZ))
        except av.FFmpegError as error:
            raise EncodeError(f"libopus failed: {error}") from error
        if len(packets) != 1:
            raise EncodeError(f"libopus returned {len(packets)} packets for 20 ms")
        return bytes(packets[0])

    def _resampled(self, samples_NC: Sound) -> Sound:
        if self._rate_hz == OPUS_HZ or not len(samples_NC):
            return samples_NC
        return self._joined(self._resampler.resample(self._frame(samples_NC, self._rate_hz)))

    def _drained(self) -> Sound:
        if self._rate_hz == OPUS_HZ:
            return np.zeros((0, self._channels), np.int16)
        return self._joined(self._resampler.resample(None))

    def _frame(self, samples_NC: Sound, rate_hz: int) -> av.AudioFrame:
        packed = np.ascontiguousarray(samples_NC).reshape(1, -1)
        frame = av.AudioFrame.from_ndarray(packed, format="s16", layout=self._layout)
        frame.sample_rate = rate_hz
        return frame

    def _joined(self, frames: list[av.AudioFrame]) -> Sound:
        parts = [frame.to_ndarray().reshape(-1, self._channels) for frame in frames]
        if not parts:
            return np.zeros((0, self._channels), np.int16)
        return np.concatenate(parts).astype(np.int16, copy=False)


def _open(layout: str, channels: int) -> av.AudioCodecContext:
    context = av.CodecContext.create("libopus", "w")
    context.sample_rate = OPUS_HZ
    context.layout = layout
    context.format = "s16"
    context.bit_rate = BITS_A_CHANNEL * channels
    context.options = {"frame_duration": "20", "compression_level": "5"}
    try:
        context.open()
    except av.FFmpegError as error:
        raise EncodeError(f"libopus refuses {layout}: {error}") from error
    return context


@dataclass(frozen=True, slots=True)
class Silence:
    """A packet of silence, and the header of its stream."""

    packet: bytes
    description: bytes


@cache
def silence(channels: int) -> Silence:
    """Return 20 ms of silence, as libopus codes it once it has settled."""
    encoder = OpusEncoder(SoundShape(OPUS_HZ, channels))
    packets = encoder.encode(np.zeros((10 * PACKET_SAMPLES, channels), np.int16))
    return Silence(packets[-1], encoder.format.description)
