"""The world's pictures on their way into a room."""

import pytest

from reverie.rtc.livekit.picture_track import PictureShape, factor


@pytest.mark.parametrize(
    ("width", "height", "times"),
    [(128, 128, 2), (64, 64, 4), (16, 16, 4), (640, 360, 1), (300, 240, 2), (256, 256, 1)],
)
def test_small_pictures_are_enlarged_by_a_whole_factor(width: int, height: int, times: int) -> None:
    assert factor(PictureShape(width, height, 24.0), 256) == times


def test_who_wants_them_as_they_are_says_so() -> None:
    assert factor(PictureShape(16, 16, 24.0), 0) == 1
