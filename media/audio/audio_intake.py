"""One input stream of sound: pushed sound of any rate, at the rate that the model takes."""

import numpy as np
from av import CodecContext, Packet
from av.audio.codeccontext import AudioCodecContext
from av.error import FFmpegError

from reverie.media.audio.resampler import Resampler, mixed
from reverie.media.errors import BadInputError
from reverie.media.raw import Piece, RawAudio, Samples
from reverie.media.video.pictures import DEFAULT_LIMITS, IntakeLimits

SLOWEST_HZ = 8000
FASTEST_HZ = 48_000
OPUS_HZ = 48_000
PIECE_S = 0.1
"""Longest piece that the model gets at once."""
GAP_US = 200_000
"""Sound whose time is this far from the end of the sound before it begins a new stream."""


class AudioIntake:
    """Decodes, checks, mixes and resamples. Blocks: one call at a time, on its own thread."""

    def __init__(
        self, rate_hz: int, channels: int = 1, limits: IntakeLimits = DEFAULT_LIMITS
    ) -> None:
        self._rate_hz = rate_hz
        self._channels = channels
        self._limits = limits
        self._opus: AudioCodecContext | None = None
        self._resampler: Resampler | None = None
        self._from_hz = 0
        self._start_us = 0
        self._done = 0  # samples that came out since then

    def take(self, raw: RawAudio) -> tuple[Piece, ...]:
        """Return the pieces that are ready with this one, of `PIECE_S` at most.

        Raises:
            BadInputError: it cannot be read, is too long or not finite, or neither mono nor stereo.
        """
        rate_hz, samples_NC = self._samples(raw)
        self._check(rate_hz, samples_NC)
        out = [] if self._goes_on(raw, rate_hz) else self._begin(raw.pts_us, rate_hz)
        assert self._resampler is not None, "a stream has begun"
        mix = mixed(np.clip(samples_NC, -1, 1), self._channels)
        out += self._cut(self._resampler.take(mix))
        return tuple(_ended([*out, *self._end()])) if raw.last else tuple(out)

    @property
    def open(self) -> bool:
        """Whether sound has begun and not ended."""
        return self._resampler is not None

    def finish(self) -> tuple[Piece, ...]:
        """End the sound; return what was held back."""
        return tuple(_ended(self._end()))

    def _samples(self, raw: RawAudio) -> tuple[int, Samples]:
        if isinstance(raw.data, np.ndarray):
            samples = raw.data[:, None] if raw.data.ndim == 1 else raw.data
            return raw.rate_hz, samples.astype(np.float32, copy=False)
        if raw.codec == "opus":
            return OPUS_HZ, self._opened_opus(raw.data)
        if raw.channels not in (1, 2):
            raise BadInputError(f"sound is mono or stereo, not {raw.channels} channels")
        kind = np.dtype("<i2") if raw.codec == "pcm16" else np.dtype("<f4")
        if len(raw.data) % (kind.itemsize * raw.channels):
            raise BadInputError(
                f"{len(raw.data)} bytes are not a whole number of {raw.codec} samples"
            )
        flat: Samples = np.frombuffer(raw.data, kind).astype(np.float32)
        if raw.codec == "pcm16":
            flat /= 32768
        return raw.rate_hz, flat.reshape(-1, raw.channels)

    def _opened_opus(self, data: bytes) -> Samples:
        if self._opus is None:
            codec = CodecContext.create("libopus", "r")
            assert isinstance(codec, AudioCodecContext), "opus is an audio codec"
            codec.sample_rate, codec.layout = OPUS_HZ, "stereo"
            self._opus = codec
        try:
            frames = self._opus.decode(Packet(data))
        except (FFmpegError, ValueError) as error:
            self._opus = None
            raise BadInputError(f"the Opus packet cannot be decoded: {error}") from None
        parts = [frame.to_ndarray().reshape(-1, 2) / 32768 for frame in frames]
        whole = np.concatenate(parts) if parts else np.zeros((0, 2))
        return whole.astype(np.float32)

    def _check(self, rate_hz: int, samples_NC: Samples) -> None:
        if not SLOWEST_HZ <= rate_hz <= FASTEST_HZ:
            text = f"sound has {SLOWEST_HZ} to {FASTEST_HZ} samples a second, not {rate_hz}"
            raise BadInputError(text)
        if samples_NC.ndim != 2 or samples_NC.shape[1] not in (1, 2):
            shape = list(samples_NC.shape)
            raise BadInputError(f"sound is mono or stereo [samples, channels], not {shape}")
        if not len(samples_NC):
            raise BadInputError("a piece of sound needs samples")
        if len(samples_NC) > rate_hz * self._limits.sound_s:
            text = f"a piece of sound has at most {self._limits.sound_s:g} s (input_sound_s)"
            raise BadInputError(text)
        if not np.isfinite(samples_NC).all():
            raise BadInputError("the sound holds values that are not finite")

    def _goes_on(self, raw: RawAudio, rate_hz: int) -> bool:
        expected_us = self._start_us + self._done * 1e6 / self._rate_hz
        near = abs(raw.pts_us - expected_us) < GAP_US
        return self._resampler is not None and rate_hz == self._from_hz and near

    def _begin(self, pts_us: int, rate_hz: int) -> list[Piece]:
        rest = self._end()
        self._resampler = Resampler(rate_hz, self._rate_hz, self._channels)
        self._from_hz, self._start_us, self._done = rate_hz, pts_us, 0
        return rest

    def _end(self) -> list[Piece]:
        resampler, self._resampler = self._resampler, None
        return self._cut(resampler.flush()) if resampler else []

    def _cut(self, samples_NC: Samples) -> list[Piece]:
        pieces, longest = [], max(1, round(self._rate_hz * PIECE_S))
        for start in range(0, len(samples_NC), longest):
            part = np.ascontiguousarray(samples_NC[start : start + longest])
            pts_us = self._start_us + round(self._done * 1e6 / self._rate_hz)
            pieces.append(Piece(pts_us, part))
            self._done += len(part)
        return pieces


def _ended(pieces: list[Piece]) -> list[Piece]:
    return [*pieces[:-1], *(Piece(each.pts_us, each.data, last=True) for each in pieces[-1:])]
