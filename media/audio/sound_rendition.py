"""One codec of an audio stream: its encoder, and the times of its packets.

Times come from counting samples since the last anchor, not from adding up durations, so that they
do not drift. A gap, a cut or a loss ends the current run and sets a new anchor.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from reverie.media.audio.opus import OpusEncoder
from reverie.media.audio.pcm16 import Pcm16Encoder
from reverie.media.audio.sound import (
    AudioCodec,
    Sound,
    SoundFormat,
    SoundPacket,
    SoundShape,
    SoundTag,
)
from reverie.media.audio.sound_queue import QueuedSound
from reverie.media.errors import EncodeError

GAP_US = 5_000
"""A smaller difference between times counts as rounding."""


class SoundEncoder(Protocol):
    """Encodes sound in order. One thread uses it at a time."""

    format: SoundFormat

    def encode(self, samples_NC: Sound) -> list[bytes]:
        """Return the packets that are full."""

    def finish(self) -> list[bytes]:
        """Return what was held back. Nothing is encoded afterwards."""


def open_sound_encoder(codec: AudioCodec, shape: SoundShape) -> SoundEncoder:
    """Return a fresh encoder.

    Raises:
        EncodeError: the codec refuses.
    """
    match codec:
        case AudioCodec.OPUS:
            return OpusEncoder(shape)
        case AudioCodec.PCM16:
            return Pcm16Encoder(shape)


OpenSoundEncoder = Callable[[AudioCodec, SoundShape], SoundEncoder]
"""What makes encoders. Called on the encoding thread."""


@dataclass(slots=True)
class _Run:
    """Sound without a gap: its beginning, and how much came in and went out.

    Attributes:
        taken: samples at the stream's rate.
        given: samples at the format's.
        dropped: packets lost before it, that its first packet counts.
    """

    encoder: SoundEncoder
    from_us: int
    tag: SoundTag
    dropped: int
    taken: int = 0
    given: int = 0


class SoundRendition:
    """Shared by all subscribers of one codec. Used by the encoding thread only."""

    def __init__(
        self,
        codec: AudioCodec,
        shape: SoundShape,
        open_encoder: OpenSoundEncoder = open_sound_encoder,
    ) -> None:
        """Open the encoder with the first sound."""
        self._open_encoder = open_encoder
        self._codec = codec
        self._shape = shape
        self._run: _Run | None = None
        self._end_us = 0  # of the last packet

    def encode(self, piece: QueuedSound) -> list[SoundPacket]:
        """Return the packets that a piece completes.

        Raises:
            EncodeError: the encoder failed.
        """
        tag, packets = piece.tag, []
        run = self._run
        if run is None or tag.discontinuity or not self._follows(run, tag.pts_us):
            packets = self.finish()
            begins_us = max(tag.pts_us, self._end_us)
            run = _Run(self._open_encoder(self._codec, self._shape), begins_us, tag, piece.dropped)
            self._run = run
        run.taken += len(piece.samples_NC)
        full = self._packets(run, run.encoder.encode(piece.samples_NC), tag)
        if tag.last and full:
            full[-1] = replace(full[-1], last=True)
        return packets + full

    def finish(self) -> list[SoundPacket]:
        """End the run; return waiting sound."""
        run, self._run = self._run, None
        return [] if run is None else self._packets(run, run.encoder.finish(), run.tag)

    def cut(self) -> None:
        """Drop waiting sound; the next sound is a discontinuity."""
        self._run = None

    def _follows(self, run: _Run, pts_us: int) -> bool:
        return abs(run.from_us + self._shape.duration_us(run.taken) - pts_us) < GAP_US

    def _packets(self, run: _Run, payloads: list[bytes], tag: SoundTag) -> list[SoundPacket]:
        return [self._packet(run, data, tag) for data in payloads]

    def _packet(self, run: _Run, data: bytes, tag: SoundTag) -> SoundPacket:
        format = run.encoder.format
        out = SoundShape(format.rate_hz, format.channels)
        samples = len(data) // (2 * format.channels)
        if format.codec is AudioCodec.OPUS:
            samples = format.rate_hz // 50
        pts_us = run.from_us + out.duration_us(run.given)
        first = not run.given
        run.given += samples
        self._end_us = run.from_us + out.duration_us(run.given)
        if self._end_us <= pts_us:
            raise EncodeError("the encoder returned an empty packet")
        return SoundPacket(
            data=data,
            pts_us=pts_us,
            duration_us=self._end_us - pts_us,
            samples=samples,
            format=format,
            chunk=tag.chunk,
            step=tag.step,
            discontinuity=first,
            dropped=run.dropped if first else 0,
        )
