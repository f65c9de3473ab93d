"""Picture files from strangers: right, or refused before they cost anything."""

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from moving_pictures import CORNERS, bomb, corners, file_of, grey, quarters, turned
from PIL import Image

from reverie.media import BadInputError, IntakeLimits, Size, read_picture

UPRIGHT = quarters(64, 32)


def test_a_picture_comes_out_as_it_went_in() -> None:
    assert np.array_equal(read_picture(file_of(UPRIGHT)), UPRIGHT)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_picture_is_set_upright_as_its_tag_says(kind: str, orientation: int) -> None:
    back = {
        1: UPRIGHT,
        2: UPRIGHT[:, ::-1],
        3: UPRIGHT[::-1, ::-1],
        4: UPRIGHT[::-1],
        5: UPRIGHT.transpose(1, 0, 2),
        6: np.rot90(UPRIGHT, 1),
        7: UPRIGHT[::-1, ::-1].transpose(1, 0, 2),
        8: np.rot90(UPRIGHT, -1),
    }
    file = turned(np.ascontiguousarray(back[orientation]), orientation, kind)
    picture = read_picture(file)
    assert picture.shape == UPRIGHT.shape
    assert corners(picture) == list(CORNERS)


@pytest.mark.parametrize("mode", ["1", "L", "P", "LA", "RGBA", "RGB"])
def test_pictures_of_every_kind_are_seen_in_their_colours(mode: str) -> None:
    given = Image.fromarray(grey(200)).convert(mode)
    picture = read_picture(file_of(given))
    expected = np.asarray(given.convert("RGB"))
    assert np.abs(picture.astype(int) - expected).max() <= 2


def test_cmyk_is_seen_as_printed() -> None:
    given = Image.fromarray(UPRIGHT).convert("CMYK")
    assert corners(read_picture(file_of(given, "JPEG"))) == list(CORNERS)


def test_deep_grey_is_grey_and_not_white() -> None:
    ramp = np.linspace(0, 65535, 64, dtype=np.uint16)[None].repeat(8, 0)
    picture = read_picture(file_of(Image.fromarray(ramp)))
    assert np.abs(picture[0, :, 0] - np.linspace(0, 255, 64)).max() <= 1


def test_what_is_transparent_lies_on_white() -> None:
    given = np.zeros((8, 8, 4), np.uint8)
    given[:4, :, 3] = 255
    picture = read_picture(file_of(Image.fromarray(given)))
    assert picture[0, 0].tolist() == [0, 0, 0]
    assert picture[7, 7].tolist() == [255, 255, 255]


def test_a_palette_with_a_transparent_entry_lies_on_white() -> None:
    given = Image.fromarray(grey(10)).convert("P")
    picture = read_picture(file_of(given, "PNG", transparency=given.getpixel((0, 0))))
    assert picture[0, 0].tolist() == [255, 255, 255]


def test_of_an_animation_the_first_picture_is_seen() -> None:
    pictures = [Image.fromarray(grey(level)) for level in (10, 200, 250)]
    file = io.BytesIO()
    pictures[0].save(file, "GIF", save_all=True, append_images=pictures[1:])
    assert np.abs(read_picture(file.getvalue()).astype(int) - 10).max() <= 2


def test_a_large_jpeg_may_be_decoded_smaller_and_is_never_smaller_than_needed() -> None:
    file = file_of(quarters(3000, 2000), "JPEG")
    picture = read_picture(file, at_least=Size(128, 128))
    assert 128 <= picture.shape[0] < 2000
    assert picture.shape[1] == pytest.approx(picture.shape[0] * 1.5, abs=2)
    assert corners(picture) == list(CORNERS)


@pytest.mark.parametrize("mode", ["1", "L", "P", "LA", "RGBA", "RGB", "I;16"])
def test_a_large_picture_that_is_wanted_small_is_the_mean_of_what_it_stands_for(mode: str) -> None:
    ramp = np.linspace(0, 65535 if mode == "I;16" else 255, 1200)[:, None].repeat(900, 1)
    given = Image.fromarray(ramp.astype(np.uint16 if mode == "I;16" else np.uint8))
    file = file_of(given if mode == "I;16" else given.convert(mode))
    small = read_picture(file, at_least=Size(64, 64))
    assert small.shape == (171, 128, 3)
    assert np.abs(small.mean(axis=(1, 2)) - np.linspace(0, 255, 171)).max() < 12


@pytest.mark.parametrize(("width", "height"), [(13_000, 13_000), (30_000, 30_000), (100, 65_500)])
def test_c18_a_small_file_with_a_huge_picture_is_refused_by_its_header(
    width: int, height: int
) -> None:
    with pytest.raises(BadInputError, match="pixels"):
        read_picture(bomb(width, height))


def test_a_limit_of_pixels_is_named() -> None:
    with pytest.raises(BadInputError, match=r"at most 1000 pixels \(input_pixels\), not 64x32"):
        read_picture(file_of(UPRIGHT), IntakeLimits(pixels=1000))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF"])
def test_a_file_that_is_cut_short_is_refused_wherever_it_is_cut(kind: str) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    file = file_of(noise, kind)
    for share in (0.0, 0.01, 0.1, 0.5, 0.9):
        with pytest.raises(BadInputError):
            read_picture(file[: int(len(file) * share)])


def test_a_file_of_another_kind_than_was_said_is_refused() -> None:
    with pytest.raises(BadInputError, match="not a picture of a kind"):
        read_picture(file_of(UPRIGHT, "PNG"), formats=("jpeg",))
    with pytest.raises(BadInputError, match="not a picture of a kind"):
        read_picture(b"a letter", formats=("jpeg", "png"))


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"\0\0\0\x18ftypheic", "a HEIC photo"),
        (b"\0\0\0\x18ftypmif1", "a HEIC photo"),
        (b"\0\0\0\x18ftypavif", "an AVIF picture"),
        (b"<svg xmlns=", "an SVG drawing"),
        (b"icns", "an ICNS picture"),
        (b"BM", "a BMP picture"),
        (b"\xff\x0a", "a JPEG XL picture"),
    ],
)
def test_kinds_that_people_have_and_that_are_not_read_are_refused_by_name(
    head: bytes, name: str
) -> None:
    for file in (head + bytes(64), file_of(UPRIGHT, "TIFF")):
        with pytest.raises(BadInputError, match="which is not read here") as refused:
            read_picture(file)
        assert ("a TIFF picture" if file[:2] == b"II" else name) in str(refused.value)


@pytest.mark.filterwarnings("ignore:Tag data larger than file", "ignore:Truncated File Read")
@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
@settings(max_examples=100, deadline=None)
@given(
    kind=st.sampled_from(["JPEG", "PNG", "WEBP", "GIF"]),
    at=st.floats(0, 1),
    junk=st.binary(min_size=1, max_size=12),
)
def test_whatever_is_broken_in_a_file_it_is_a_picture_or_refused(
    kind: str, at: float, junk: bytes
) -> None:
    file = bytearray(turned(quarters(24, 16), 6, kind) if kind != "GIF" else file_of(UPRIGHT, kind))
    start = int(at * (len(file) - len(junk)))
    file[start : start + len(junk)] = junk
    try:
        picture = read_picture(bytes(file), IntakeLimits(pixels=2**20))
    except BadInputError:
        return
    assert picture.dtype == np.uint8
    assert picture.ndim == 3
    assert picture.shape[2] == 3
