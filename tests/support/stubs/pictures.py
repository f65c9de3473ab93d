"""Test pictures whose number can be read back from their pixels, and a decoder for both codecs."""

from io import BytesIO

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image

BITS = 10


def numbered(number: int, width: int = 128, height: int = 128) -> NDArray[np.uint8]:
    """Paint `number` as ten black or white columns."""
    bits = [(number >> bit) & 1 for bit in range(BITS)]
    columns = [bits[x * BITS // width] for x in range(width)]
    row = np.array([[255 * bit] * 3 for bit in columns], dtype=np.uint8)
    return np.repeat(row[None], height, axis=0)


def read_number(frame_HWC: NDArray[np.uint8]) -> int:
    """Return what `numbered` painted; -1 when rows disagree (a torn picture)."""
    width = frame_HWC.shape[1]
    centres = [(2 * bit + 1) * width // (2 * BITS) for bit in range(BITS)]
    bits_HB = frame_HWC[:, centres, 1] > 127
    if (bits_HB != bits_HB[0]).any():
        return -1
    return sum(int(bit) << place for place, bit in enumerate(bits_HB[0]))


def gradient(width: int, height: int) -> NDArray[np.uint8]:
    """Paint a smooth picture, different in each channel and at each edge."""
    x_HW, y_HW = np.meshgrid(np.linspace(0, 1, width), np.linspace(0, 1, height))
    channels = (255 * x_HW, 255 * y_HW, 128 + 127 * np.sin(3 * x_HW + 2 * y_HW))
    return np.stack(channels, axis=-1).astype(np.uint8)


class H264Decoder:
    """Decodes access units one at a time, as a browser does."""

    def __init__(self) -> None:
        self._context = av.CodecContext.create("h264", "r")
        self._context.thread_count = 1
        self._context.options = {"flags": "low_delay"}

    def decode(self, access_unit: bytes) -> NDArray[np.uint8]:
        (frame,) = self._context.decode(av.Packet(access_unit))
        return np.asarray(frame.to_ndarray(format="rgb24"), dtype=np.uint8)


def decode_jpeg(data: bytes) -> NDArray[np.uint8]:
    with Image.open(BytesIO(data)) as image:
        return np.asarray(image.convert("RGB"), dtype=np.uint8)


def psnr(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> float:
    """Return the likeness of two pictures in dB; above 30 is hard to tell apart."""
    error = np.mean((a.astype(np.float64) - b.astype(np.float64)) ** 2)
    return float("inf") if error == 0 else float(10 * np.log10(255**2 / error))
