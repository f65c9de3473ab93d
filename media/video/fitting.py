"""Any picture to the size that a model takes: scaled to cover it, what overhangs cut evenly.

The proportions stay, no border is made up, and one rule serves every way in. What has the size
already comes through untouched.
"""

import numpy as np
from PIL import Image

from reverie.media.types import Picture, Size


def fit(picture_HWC: Picture, size: Size) -> Picture:
    """Return the picture [size.height, size.width, 3]; the same object when nothing is to do."""
    height, width, _ = picture_HWC.shape
    if (width, height) == (size.width, size.height):
        return picture_HWC
    image = Image.fromarray(np.ascontiguousarray(picture_HWC))
    scaled = image.resize(
        (size.width, size.height),
        Image.Resampling.BICUBIC,
        box=covering_box(width, height, size),
        reducing_gap=3.0,
    )
    return np.asarray(scaled)


def covering_box(width: int, height: int, size: Size) -> tuple[float, float, float, float]:
    """Return the middle part (left, top, right, bottom) that has the proportions of `size`.

    It is one pixel wide and high at the least, as far as a picture is.
    """
    across = max(1.0, min(float(width), height * size.width / size.height))
    down = max(1.0, min(float(height), width * size.height / size.width))
    left, top = (width - across) / 2, (height - down) / 2
    return left, top, left + across, top + down
