"""VP8 pictures, decoded back."""

import av
import numpy as np
import pytest
from numpy.typing import NDArray
from pictures import gradient, numbered, psnr, read_number

from reverie.media import Container, EncodeError, Size
from reverie.media.video.vp8 import Vp8Encoder


class Vp8Decoder:
    def __init__(self) -> None:
        self._context = av.CodecContext.create("vp8", "r")

    def decode(self, data: bytes) -> NDArray[np.uint8]:
        (frame,) = self._context.decode(av.Packet(data))
        return np.asarray(frame.to_ndarray(format="rgb24"), dtype=np.uint8)


@pytest.mark.parametrize(
    ("width", "height"),
    [(128, 128), (853, 481), (854, 481), (853, 480), (1, 1), (2, 2), (64, 64), (8192, 8)],
)
def test_c09_every_size_comes_back_as_it_is(width: int, height: int) -> None:
    picture = gradient(width, height)
    encoded = Vp8Encoder(Size(width, height), 15).encode(picture, 0, force_key=False)
    assert encoded.key
    assert (encoded.format.codec, encoded.format.container) == ("vp8", Container.VP8)
    decoded = Vp8Decoder().decode(encoded.data)
    assert decoded.shape == (height, width, 3)
    if min(width, height) > 16:  # in smaller ones, colour at half resolution tells little
        assert psnr(decoded, picture) > 30


def test_colours_survive() -> None:
    colours = np.array(
        [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255], [0, 0, 0], [200, 120, 40]],
        dtype=np.uint8,
    )
    picture = np.repeat(np.repeat(colours[None], 32, axis=1), 64, axis=0)
    encoded = Vp8Encoder(Size(192, 64), 15).encode(picture, 0, force_key=False)
    decoded = Vp8Decoder().decode(encoded.data)
    assert np.abs(decoded[32, 16::32].astype(int) - colours.astype(int)).max() <= 12


def test_the_first_frame_and_forced_ones_are_key_frames_and_no_others() -> None:
    encoder = Vp8Encoder(Size(128, 128), 15)
    decoder = Vp8Decoder()
    frames = [
        encoder.encode(numbered(index % 1024), index * 66_667, force_key=index in (4, 5))
        for index in range(200)
    ]
    assert [index for index, frame in enumerate(frames) if frame.key] == [0, 4, 5]
    assert [read_number(decoder.decode(frame.data)) for frame in frames] == list(range(200))


def test_a_still_world_costs_next_to_nothing() -> None:
    encoder = Vp8Encoder(Size(128, 128), 15)
    sizes = [
        len(encoder.encode(gradient(128, 128), index * 66_667, force_key=False).data)
        for index in range(60)
    ]
    assert sum(sizes[30:]) / 30 < 200


def test_noise_keeps_to_a_limit() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (60, 128, 128, 3), dtype=np.uint8)
    free, limited = Vp8Encoder(Size(128, 128), 15), Vp8Encoder(Size(128, 128), 15)
    limited.limit(300_000)
    sent = {"free": 0, "limited": 0}
    for index, picture in enumerate(noise):
        sent["free"] += len(free.encode(picture, index * 66_667, False).data)
        sent["limited"] += len(limited.encode(picture, index * 66_667, False).data)
    bits_per_s = sent["limited"] * 8 / (len(noise) / 15)
    assert sent["limited"] < sent["free"] / 2
    assert bits_per_s < 900_000  # noise cannot be had for less: the coarsest step has its price


def test_a_closed_encoder_encodes_nothing() -> None:
    encoder = Vp8Encoder(Size(16, 16), 15)
    encoder.close()
    encoder.close()
    encoder.limit(100_000)
    with pytest.raises(EncodeError):
        encoder.encode(gradient(16, 16), 0, force_key=False)
