"""JPEG pictures, decoded back."""

import pytest
from pictures import decode_jpeg, gradient, numbered, psnr, read_number

from reverie.media import Container, Size
from reverie.media.video.jpeg import JpegEncoder


@pytest.mark.parametrize(("width", "height"), [(128, 128), (853, 481), (1, 1), (8192, 8)])
def test_every_size_comes_back_as_it_was(width: int, height: int) -> None:
    picture = gradient(width, height)
    encoded = JpegEncoder(Size(width, height)).encode(picture, 7, force_key=False)
    assert psnr(decode_jpeg(encoded.data), picture) > 30
    assert (encoded.format.container, encoded.pts_us) == (Container.JPEG, 7)


def test_every_frame_is_a_key_frame() -> None:
    encoder = JpegEncoder(Size(128, 128))
    frames = [encoder.encode(numbered(index), index, force_key=False) for index in range(3)]
    assert all(frame.key for frame in frames)
    assert [read_number(decode_jpeg(frame.data)) for frame in frames] == [0, 1, 2]
