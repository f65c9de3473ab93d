"""Pictures that carry the time at which they were drawn, robust to a lossy codec.

A picture of 256x256 holds 40 cells of 32 pixels, light or dark: 32 bits of the time in tenths of a
millisecond, and 8 of a checksum. Below them a texture moves, so that a codec has work to do, and at
the bottom a bar is light while a key is held.
"""

import time

import numpy as np
from numpy.typing import NDArray

from reverie.models.frame_generator import FrameGeneratorFamily

SIDE_PX = 256
CELL_PX = 32
COLUMNS = SIDE_PX // CELL_PX
BITS = 40
UNIT_S = 1e-4
WRAP = 2**32
_CODE_PX = CELL_PX * BITS // COLUMNS
KEY = "mark"


def now_units() -> int:
    """Return the time of day in tenths of a millisecond, modulo `WRAP`."""
    return time.time_ns() // 100_000 % WRAP


def paint(units: int, number: int, *, marked: bool = False) -> NDArray[np.uint8]:
    """Draw a time [H, W, 3]; `number` moves the texture, and a light bar marks a key."""
    checksum = sum((units >> (8 * place)) & 0xFF for place in range(4)) % 256
    value = units | checksum << 32
    bits = np.array([(value >> place) & 1 for place in range(BITS)], np.uint8)
    cells = (bits.reshape(-1, COLUMNS) * 200 + 28).astype(np.uint8)
    picture = np.empty((SIDE_PX, SIDE_PX, 3), np.uint8)
    picture[:_CODE_PX] = np.repeat(np.repeat(cells, CELL_PX, 0), CELL_PX, 1)[..., None]
    x, y = np.meshgrid(np.arange(SIDE_PX), np.arange(SIDE_PX - _CODE_PX))
    wave = 128 + 60 * np.sin((x + 3 * number) / 17) * np.cos((y - number) / 11)
    picture[_CODE_PX:] = np.stack([wave, 255 - wave, wave / 2 + 60], axis=-1).astype(np.uint8)
    picture[-CELL_PX:] = 228 if marked else 28
    return picture


def read(picture: NDArray[np.uint8]) -> int | None:
    """Return the time that a picture [H, W, 3] carries; None when its checksum is wrong."""
    middle = CELL_PX // 2
    cells = picture[middle:_CODE_PX:CELL_PX, middle:SIDE_PX:CELL_PX, 1] > 128
    value = sum(int(bit) << place for place, bit in enumerate(cells.ravel()))
    units = value % WRAP
    checksum = sum((units >> (8 * place)) & 0xFF for place in range(4)) % 256
    return units if value >> 32 == checksum else None


def is_marked(picture: NDArray[np.uint8]) -> bool:
    """Tell whether a picture [H, W, 3] was drawn while a key was held."""
    return bool(picture[-CELL_PX // 2, SIDE_PX // 2, 1] > 128)


def sleep_to_tick(rate_hz: float) -> int:
    """Sleep to the next of `rate_hz` moments a second; return its number, modulo a large one."""
    number = int(time.time() * rate_hz) + 1
    time.sleep(max(0.0, number / rate_hz - time.time()))
    return number % 1_000_000


class Ticking:
    """A frame generator that draws the time, at its rate in real time."""

    title, licence = "A clock, drawn", "Apache-2.0"
    width = height = SIDE_PX
    keys = (KEY,)

    def __init__(self, rate_hz: float) -> None:
        self.name = f"ticking{rate_hz:g}"
        self.rate_hz = rate_hz

    def start(self, seed: int, prompt: str) -> int:
        """Start at frame 0."""
        return 0

    def frame(self, state: int, key: str | None, prompt: str) -> tuple[int, NDArray[np.uint8]]:
        """Wait for the next moment and draw it."""
        number = sleep_to_tick(self.rate_hz)
        return state + 1, paint(now_units(), number, marked=key is not None)


def ticking30() -> FrameGeneratorFamily:
    """Return the family at 30 frames a second, as a worker looks it up."""
    return FrameGeneratorFamily(Ticking(30.0))


def ticking15() -> FrameGeneratorFamily:
    """Return the family at 15 frames a second."""
    return FrameGeneratorFamily(Ticking(15.0))
