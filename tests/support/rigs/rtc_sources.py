"""A camera and a microphone for aiortc clients, at a steady rate, of what a test wants."""

import asyncio
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from aiortc import MediaStreamTrack
from av import AudioFrame, VideoFrame
from numpy.typing import NDArray

VIDEO_BASE = Fraction(1, 90_000)
SOUND_HZ = 48_000
PIECE = 960


class Camera(MediaStreamTrack):
    """Shows `picture(n)` as its frame n."""

    kind = "video"

    def __init__(self, picture: Callable[[int], NDArray[np.uint8]], rate_hz: float = 20.0) -> None:
        super().__init__()
        self._picture = picture
        self._rate_hz = rate_hz
        self.count = 0

    async def recv(self) -> VideoFrame:
        await asyncio.sleep(1 / self._rate_hz)
        frame = VideoFrame.from_ndarray(self._picture(self.count), format="rgb24")
        frame.pts = round(self.count * 90_000 / self._rate_hz)
        frame.time_base = VIDEO_BASE
        self.count += 1
        return frame


class Microphone(MediaStreamTrack):
    """Hears a tone, in stereo."""

    kind = "audio"

    def __init__(self, tone_hz: float) -> None:
        super().__init__()
        self._tone_hz = tone_hz
        self.count = 0

    async def recv(self) -> AudioFrame:
        await asyncio.sleep(PIECE / SOUND_HZ)
        at = self.count * PIECE + np.arange(PIECE)
        wave = (12_000 * np.sin(2 * np.pi * self._tone_hz * at / SOUND_HZ)).astype(np.int16)
        frame = AudioFrame.from_ndarray(np.repeat(wave, 2)[None], format="s16", layout="stereo")
        frame.sample_rate, frame.pts = SOUND_HZ, self.count * PIECE
        frame.time_base = Fraction(1, SOUND_HZ)
        self.count += 1
        return frame


def plain(size: tuple[int, int], colour: tuple[int, int, int]) -> NDArray[np.uint8]:
    """Return a picture [H, W, 3] of one colour."""
    width, height = size
    picture: NDArray[Any] = np.empty((height, width, 3), np.uint8)
    picture[:] = colour
    return picture
