"""H.264 access units, decoded back."""

import numpy as np
import pytest
from pictures import H264Decoder, gradient, numbered, psnr, read_number

from reverie.media import Container, EncodeError, Size
from reverie.media.video.h264 import H264Encoder
from reverie.media.video.sps import SPS, nal_units

PPS = 8
IDR = 5


def nal_types(access_unit: bytes) -> list[int]:
    return [unit[0] & 0x1F for unit in nal_units(access_unit)]


@pytest.mark.parametrize(
    ("width", "height"),
    [(128, 128), (853, 481), (854, 481), (853, 480), (1, 1), (2, 2), (64, 64), (8192, 8)],
)
def test_every_size_comes_back_at_its_true_size_plus_at_most_one_padded_line(
    width: int, height: int
) -> None:
    picture = gradient(width, height)
    encoded = H264Encoder(Size(width, height), 15).encode(picture, 0, force_key=False)
    decoded = H264Decoder().decode(encoded.data)
    assert decoded.shape == (height + height % 2, width + width % 2, 3)
    if min(width, height) > 16:  # in smaller ones, colour at half resolution tells little
        assert psnr(decoded[:height, :width], picture) > 32
    assert (encoded.format.width, encoded.format.height) == (width, height)


def test_padding_repeats_the_edge_so_that_it_does_not_bleed_into_the_picture() -> None:
    white = np.full((481, 853, 3), 255, dtype=np.uint8)
    encoded = H264Encoder(Size(853, 481), 15).encode(white, 0, force_key=False)
    assert H264Decoder().decode(encoded.data).min() > 250


def test_colours_survive() -> None:
    colours = np.array(
        [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255], [0, 0, 0], [200, 120, 40]],
        dtype=np.uint8,
    )
    picture = np.repeat(np.repeat(colours[None], 32, axis=1), 64, axis=0)
    encoded = H264Encoder(Size(192, 64), 15).encode(picture, 0, force_key=False)
    decoded = H264Decoder().decode(encoded.data)
    assert np.abs(decoded[32, 16::32].astype(int) - colours.astype(int)).max() <= 6


def test_the_first_frame_and_forced_ones_are_key_frames_and_no_others() -> None:
    encoder = H264Encoder(Size(128, 128), 15)
    frames = [
        encoder.encode(numbered(index), index * 66_667, force_key=index in (4, 5))
        for index in range(400)
    ]
    assert [index for index, frame in enumerate(frames) if frame.key] == [0, 4, 5]


def test_a_scene_cut_makes_no_key_frame_of_its_own() -> None:
    encoder = H264Encoder(Size(128, 128), 15)
    rng = np.random.default_rng(0)
    keys = [
        encoder.encode(
            rng.integers(0, 256, (128, 128, 3), dtype=np.uint8), index * 66_667, force_key=False
        ).key
        for index in range(20)
    ]
    assert keys == [True] + [False] * 19


def test_a_key_frame_carries_its_headers_in_band_and_decodes_alone() -> None:
    encoder = H264Encoder(Size(128, 128), 15)
    for index in range(3):
        encoder.encode(numbered(index), index, force_key=False)
    key = encoder.encode(numbered(300), 3, force_key=True)
    assert {SPS, PPS, IDR} <= set(nal_types(key.data))
    assert read_number(H264Decoder().decode(key.data)) == 300


def test_a_frame_between_key_frames_carries_no_headers() -> None:
    encoder = H264Encoder(Size(128, 128), 15)
    encoder.encode(numbered(0), 0, force_key=False)
    assert SPS not in nal_types(encoder.encode(numbered(1), 1, force_key=False).data)


def test_the_codec_string_is_the_one_in_the_stream() -> None:
    small = H264Encoder(Size(128, 128), 15).encode(numbered(0), 0, force_key=False)
    large = H264Encoder(Size(1280, 720), 30).encode(gradient(1280, 720), 0, force_key=False)
    assert small.format.codec.startswith("avc1.42c0")
    assert large.format.codec == "avc1.42c01f"
    assert small.format.container is Container.ANNEXB


def test_no_frame_is_held_back_and_all_come_in_order() -> None:
    encoder, decoder = H264Encoder(Size(128, 128), 15), H264Decoder()
    for index in range(60):
        encoded = encoder.encode(numbered(index), index * 66_667, force_key=index == 30)
        assert encoded.pts_us == index * 66_667
        assert read_number(decoder.decode(encoded.data)) == index


def test_a_still_world_costs_next_to_nothing() -> None:
    encoder = H264Encoder(Size(128, 128), 15)
    picture = gradient(128, 128)
    sizes = [
        len(encoder.encode(picture, index * 66_667, force_key=False).data) for index in range(30)
    ]
    assert max(sizes[10:]) < 300 < sizes[0]


def test_a_closed_encoder_says_so() -> None:
    encoder = H264Encoder(Size(128, 128), 15)
    encoder.close()
    encoder.close()
    with pytest.raises(EncodeError, match="closed"):
        encoder.encode(numbered(0), 0, force_key=False)


def test_a_picture_that_is_not_contiguous_is_encoded_all_the_same() -> None:
    mirrored = numbered(5)[:, ::-1]
    encoded = H264Encoder(Size(128, 128), 15).encode(mirrored, 0, force_key=False)
    assert read_number(H264Decoder().decode(encoded.data)[:, ::-1]) == 5


def test_noise_keeps_to_a_limit() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (45, 128, 128, 3), dtype=np.uint8)
    encoder = H264Encoder(Size(128, 128), 15)
    encoder.limit(300_000)
    sent = [len(encoder.encode(each, n * 66_667, False).data) for n, each in enumerate(noise)]
    assert sum(sent) * 8 / (len(noise) / 15) < 450_000
