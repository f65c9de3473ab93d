"""Real speech, from the host's espeak-ng, and sounds that are none."""

import io
import subprocess
import wave
from typing import Any

import numpy as np
from numpy.typing import NDArray

RATE_HZ = 16_000
Sound = NDArray[Any]


def speech(
    text: str = "Go to the lake, and tell me what you see there.", voice: str = "en"
) -> Sound:
    """Return a spoken sentence, mono at `RATE_HZ`."""
    command = ["espeak-ng", "-v", voice, "--stdout", text]
    made = subprocess.run(command, capture_output=True, check=True, timeout=30).stdout
    with wave.open(io.BytesIO(made)) as file:
        given = np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768
        rate_hz = file.getframerate()
    times = np.arange(round(len(given) * RATE_HZ / rate_hz)) * rate_hz / RATE_HZ
    sound: Sound = np.interp(times, np.arange(len(given)), given).astype(np.float32)
    return sound


def silence(seconds: float) -> Sound:
    return np.zeros(round(seconds * RATE_HZ), np.float32)


def noise(seconds: float, level: float = 0.1) -> Sound:
    made = np.random.default_rng(0).normal(0, level, round(seconds * RATE_HZ))
    return made.astype(np.float32)


def music(seconds: float) -> Sound:
    """Return chords with a beat."""
    times = np.arange(round(seconds * RATE_HZ)) / RATE_HZ
    beat = 0.5 + 0.5 * np.sin(2 * np.pi * 2 * times)
    chord = sum(np.sin(2 * np.pi * hz * times) for hz in (220.0, 277.2, 329.6, 440.0))
    return (0.08 * chord * beat).astype(np.float32)
