"""Any size to the one that a model takes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from moving_pictures import CORNERS, corners, quarters

from reverie.media import Size, fit
from reverie.media.video.fitting import covering_box

SIZE = Size(96, 64)


def test_what_has_the_size_already_is_not_touched() -> None:
    picture = quarters(96, 64)
    assert fit(picture, SIZE) is picture


@pytest.mark.parametrize(
    ("width", "height"),
    [(853, 481), (854, 481), (853, 480), (2, 2), (1, 1), (192, 128), (40, 300), (300, 40)],
)
def test_c09_every_size_becomes_the_one_that_is_wanted(width: int, height: int) -> None:
    picture = fit(quarters(width, height), SIZE)
    assert picture.shape == (64, 96, 3)
    if min(width, height) > 1:
        assert corners(picture) == list(CORNERS)


def test_c09_a_ribbon_keeps_its_middle() -> None:
    ribbon = np.zeros((8, 8192, 3), np.uint8)
    ribbon[:, 4080:4112] = 255
    assert fit(ribbon, Size(64, 64)).min() > 250


def test_what_overhangs_is_cut_evenly() -> None:
    assert covering_box(200, 100, Size(10, 10)) == (50.0, 0.0, 150.0, 100.0)
    assert covering_box(100, 200, Size(10, 10)) == (0.0, 50.0, 100.0, 150.0)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 64), st.integers(1, 64))
def test_a_plain_picture_stays_plain(width: int, height: int, across: int, down: int) -> None:
    plain = np.full((height, width, 3), (10, 120, 250), np.uint8)
    picture = fit(plain, Size(across, down))
    assert picture.shape == (down, across, 3)
    assert np.abs(picture.astype(int) - (10, 120, 250)).max() <= 1
