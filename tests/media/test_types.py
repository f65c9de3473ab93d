"""What counts as a picture."""

from typing import Any

import numpy as np
import pytest

from reverie.media import Size, UnsupportedPictureError


def test_a_size_is_read_from_a_frame() -> None:
    assert Size.of(np.zeros((481, 853, 3), dtype=np.uint8)) == Size(width=853, height=481)


@pytest.mark.parametrize(
    ("frame", "limit"),
    [
        (np.zeros((4, 4, 3), dtype=np.float32), "uint8"),
        (np.zeros((4, 4, 4), dtype=np.uint8), r"\[H, W, 3\]"),
        (np.zeros((4, 4), dtype=np.uint8), r"\[H, W, 3\]"),
        (np.zeros((0, 4, 3), dtype=np.uint8), "1 to 8192"),
        (np.zeros((1, 8193, 3), dtype=np.uint8), "1 to 8192"),
    ],
)
def test_what_cannot_be_shown_is_refused_and_the_limit_named(frame: Any, limit: str) -> None:
    with pytest.raises(UnsupportedPictureError, match=limit):
        Size.of(frame)
