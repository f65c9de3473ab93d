"""Raw pictures are exact."""

import numpy as np

from reverie.media import Size
from reverie.media.video.rgb24 import Rgb24Encoder


def test_the_exact_pixels_come_back() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (481, 853, 3), dtype=np.uint8)
    encoded = Rgb24Encoder(Size(853, 481)).encode(picture, 3, force_key=False)
    back = np.frombuffer(encoded.data, dtype=np.uint8).reshape(481, 853, 3)
    assert (back == picture).all()
    assert encoded.key


def test_rows_come_top_down_whatever_the_memory_layout() -> None:
    picture = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    encoded = Rgb24Encoder(Size(3, 2)).encode(picture[::-1], 0, force_key=False)
    assert encoded.data[:9] == bytes(range(9, 18))
