"""Any picture to the size that the model takes: scaled to cover it and cropped evenly.

The proportions stay, no border is added, and every kind of input is treated alike. A picture of
the right size is not changed.
"""

import numpy as np
from PIL import Image

from reverie.media.types import Picture, Size


def fit(picture_HWC: Picture, size: Size) -> Picture:
    """Return the picture [size.height, size.width, 3]; the same object if it fits."""
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

    It is at least one pixel wide and high.
    """
    across = max(1.0, min(float(width), height * size.width / size.height))
    down = max(1.0, min(float(height), width * size.height / size.width))
    left, top = (width - across) / 2, (height - down) / 2
    return left, top, left + across, top + down
