"""Sound for tests: a tone to put in, and ears for what comes out."""

from collections.abc import Sequence

import av
import numpy as np
from numpy.typing import NDArray

from reverie.media import Sound, SoundPacket

_LAYOUTS = {1: "mono", 2: "stereo"}


def tone(
    hz: float, seconds: float, rate_hz: int = 48_000, channels: int = 1, level: float = 0.5
) -> Sound:
    """Return a tone [N, C]."""
    times = np.arange(round(seconds * rate_hz)) / rate_hz
    wave = np.round(32767 * level * np.sin(2 * np.pi * hz * times)).astype(np.int16)
    return np.repeat(wave[:, None], channels, axis=1)


def decoded(packets: Sequence[SoundPacket]) -> Sound:
    """Return what a listener hears of Opus packets, gaps closed up."""
    return heard_opus([packet.data for packet in packets], packets[0].format.channels)


def heard_opus(payloads: Sequence[bytes], channels: int = 1) -> Sound:
    """Return what a listener hears of Opus packets."""
    context = av.CodecContext.create("libopus", "r")
    context.sample_rate = 48_000
    context.layout = _LAYOUTS[channels]
    parts = [
        np.asarray(frame.to_ndarray(), np.float64)
        for data in payloads
        for frame in context.decode(av.Packet(data))
    ]
    samples = np.concatenate([_unpacked(part, channels) for part in parts])
    return samples.astype(np.int16)


def _unpacked(part: NDArray[np.float64], channels: int) -> NDArray[np.float64]:
    return part.reshape(-1, channels) if len(part) == 1 else part.T


def pitch_hz(samples: NDArray[np.int16], rate_hz: int) -> float:
    """Return the loudest frequency, to a fraction of a hertz."""
    windowed = samples * np.hanning(len(samples))
    spectrum = np.abs(np.fft.rfft(windowed, 4 * len(samples)))
    peak = int(spectrum.argmax())
    left, middle, right = np.log(spectrum[peak - 1 : peak + 2] + 1e-9)
    shift = 0.5 * (left - right) / (left - 2 * middle + right)
    return float((peak + shift) * rate_hz / (4 * len(samples)))
