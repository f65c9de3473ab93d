"""Pictures, frames, access units and clips of every kind, in one size."""

import contextlib
import io
import struct

import av
import numpy as np
import pytest
from moving_pictures import (
    CORNERS,
    access_units,
    clip_of,
    corners,
    file_of,
    grey,
    quarters,
    turned_clip,
)

from reverie.media import (
    BadInputError,
    IntakeLimits,
    Piece,
    RawVideo,
    Size,
    VideoIntake,
    read_clip,
    upright_pixels,
)

SIZE = Size(64, 48)
LEVELS = list(range(10, 250, 12))
TIMES_MS = [index * 33 for index in range(len(LEVELS))]


def levels(pieces: list[Piece]) -> list[int]:
    """Return how bright each picture is, rounded to the clip's own levels."""
    return [min(LEVELS, key=lambda level: abs(level - piece.data.mean())) for piece in pieces]


def one(raw: RawVideo, size: Size = SIZE) -> Piece:
    [piece] = VideoIntake(size).take(raw)
    return piece


def test_pixels_come_through_and_keep_their_time() -> None:
    piece = one(RawVideo(quarters(64, 48), 1234, last=True))
    assert np.array_equal(piece.data, quarters(64, 48))
    assert (piece.pts_us, piece.last) == (1234, True)


@pytest.mark.parametrize("codec", ["jpeg", "png", "webp", "gif"])
def test_files_come_through(codec: str) -> None:
    piece = one(RawVideo(file_of(quarters(100, 75), codec.upper()), 0, codec))
    assert corners(piece.data) == list(CORNERS)


def test_raw_rows_have_to_be_as_many_as_their_size_says() -> None:
    rows = quarters(10, 6).tobytes()
    assert corners(one(RawVideo(rows, 0, "rgb24", 10, 6)).data) == list(CORNERS)
    with pytest.raises(BadInputError, match="10x7 pixels are 210 bytes, not 180"):
        one(RawVideo(rows, 0, "rgb24", 10, 7))


@pytest.mark.parametrize("shape", [(0, 4, 3), (4, 0, 3), (4, 4), (4, 4, 4), (4, 9000, 3)])
def test_pixels_that_are_no_picture_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(BadInputError):
        one(RawVideo(np.zeros(shape, np.uint8), 0))


def test_floats_are_no_pixels() -> None:
    with pytest.raises(BadInputError, match="float64"):
        one(RawVideo(np.zeros((4, 4, 3)), 0))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["yuv420p", "yuvj420p", "nv12", "yuv444p", "gray", "bgra"])
def test_decoded_frames_of_every_layout_keep_their_colours(kind: str) -> None:
    frame = av.VideoFrame.from_ndarray(quarters(64, 48), "rgb24").reformat(format=kind)
    piece = one(RawVideo(frame, 0))
    if kind == "gray":
        assert np.ptp(piece.data[0, 0].astype(int)) == 0
    else:
        assert corners(piece.data) == list(CORNERS)
        assert np.abs(piece.data[2, 2].astype(int) - CORNERS[0]).max() < 12


def test_a_frame_of_full_range_is_not_stretched() -> None:
    frame = av.VideoFrame.from_ndarray(grey(250), "rgb24").reformat(format="yuvj420p")
    assert abs(one(RawVideo(frame, 0)).data.mean() - 250) < 3


@pytest.mark.parametrize("b_frames", ["0", "3"])
def test_h264_comes_out_in_the_order_in_which_it_is_shown(b_frames: str) -> None:
    units = access_units([grey(level) for level in LEVELS], TIMES_MS, bf=b_frames)
    intake = VideoIntake(SIZE)
    pieces: list[Piece] = []
    for number, (pts_us, data) in enumerate(units):
        pieces += intake.take(RawVideo(data, pts_us, "h264", last=number == len(units) - 1))
    assert levels(pieces) == LEVELS
    assert [piece.pts_us for piece in pieces] == [time * 1000 for time in TIMES_MS]
    assert [piece.last for piece in pieces] == [False] * (len(LEVELS) - 1) + [True]


def test_h264_that_is_broken_goes_on_at_the_next_key_frame() -> None:
    units = access_units([grey(level) for level in LEVELS], TIMES_MS, g="5", bf="0")
    intake = VideoIntake(SIZE)
    shown: list[Piece] = []
    with pytest.raises(BadInputError, match=r"H\.264"):
        intake.take(RawVideo(b"\0\0\0\1garbage", 0, "h264"))
    for pts_us, data in units:
        shown += intake.take(RawVideo(data, pts_us, "h264"))
    assert levels(shown) == LEVELS


def test_h264_larger_than_the_limit_is_refused_before_it_is_decoded() -> None:
    [(pts_us, data), *_] = access_units([grey(9, 640, 480)] * 2, [0, 33])
    with pytest.raises(BadInputError):
        VideoIntake(SIZE, limits=IntakeLimits(pixels=10_000)).take(RawVideo(data, pts_us, "h264"))


def test_c33_a_stream_that_changes_its_size_keeps_the_one_that_is_wanted() -> None:
    intake = VideoIntake(SIZE)
    for width, height in ((640, 480), (320, 240), (480, 640), (640, 480)):
        [piece] = intake.take(RawVideo(quarters(width, height), 0))
        assert piece.data.shape == (48, 64, 3)
        assert corners(piece.data) == list(CORNERS)


def shown(clip: bytes) -> list[Piece]:
    intake = VideoIntake(SIZE, 30.0)
    pieces: list[Piece] = []
    for frame in read_clip(clip):
        pieces += intake.take(RawVideo(frame, round((frame.time or 0) * 1e6)))
    return [*pieces, *intake.finish()]


@pytest.mark.parametrize(
    ("codec", "kind", "options"),
    [("libx264", "mp4", {"bf": "3"}), ("libvpx", "webm", {}), ("mpeg4", "avi", {})],
)
def test_a_clip_is_read_in_the_order_in_which_it_is_shown(
    codec: str, kind: str, options: dict[str, str]
) -> None:
    clip = clip_of([grey(level) for level in LEVELS], TIMES_MS, codec=codec, kind=kind, **options)
    assert levels(shown(clip)) == LEVELS


def test_a_clip_of_varying_rate_lasts_as_long_as_it_did() -> None:
    times = [0, 20, 40, 340, 380, 600, 610, 620, 1000]
    pictures = [grey(level) for level in LEVELS[: len(times)]]
    pieces = shown(clip_of(pictures, times))
    assert (pieces[-1].pts_us - pieces[0].pts_us) / 1e6 == pytest.approx(1.0, abs=0.05)
    brightness = levels(pieces)
    assert brightness == sorted(brightness)
    assert brightness.count(LEVELS[2]) == pytest.approx(9, abs=1)


def test_a_clip_from_a_telephone_is_set_upright() -> None:
    clip = turned_clip(clip_of([quarters(64, 48)] * 2, [0, 33]))
    picture = upright_pixels(next(read_clip(clip)), IntakeLimits())
    assert picture.shape == (64, 48, 3)
    red, green, blue, white = CORNERS
    assert corners(picture) == [blue, red, white, green]


def playlist() -> bytes:
    return b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n"


def concatenation() -> bytes:
    return b"ffconcat version 1.0\nfile '/etc/passwd'\n"


@pytest.mark.parametrize("bad", [b"", b"nothing", playlist(), concatenation()])
def test_c39_what_is_no_clip_is_refused_and_nothing_that_it_names_is_opened(bad: bytes) -> None:
    with pytest.raises(BadInputError, match="not a clip of a kind"):
        next(read_clip(bad))


def test_a_clip_that_is_cut_short_gives_what_can_be_read_and_then_says_so() -> None:
    clip = clip_of([quarters(320, 240)] * 40, range(0, 1320, 33), kind="matroska")
    reading, frames = read_clip(clip[: len(clip) // 3]), 0
    with contextlib.suppress(BadInputError):
        while next(reading, None) is not None:
            frames += 1
    assert frames < 40
    headless = clip_of([grey(9)] * 3, [0, 33, 66])[:200]
    with pytest.raises(BadInputError, match=r"^the clip is truncated or broken: [^<\[]*$"):
        list(read_clip(headless))


def test_a_clip_without_pictures_or_beyond_its_limits_is_refused() -> None:
    sound = io.BytesIO()
    with av.open(sound, "w", format="mp4") as container:
        stream = container.add_stream("aac", rate=48_000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
        frame.sample_rate = 48_000
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    with pytest.raises(BadInputError, match="no pictures"):
        next(read_clip(sound.getvalue()))
    clip = clip_of([grey(9)] * 4, [0, 1000, 2000, 3000])
    with pytest.raises(BadInputError, match="at most 1 s"):
        list(read_clip(clip, IntakeLimits(clip_s=1.0)))
    with pytest.raises(BadInputError, match="at most 100 pixels"):
        list(read_clip(clip, IntakeLimits(pixels=100)))


def test_a_clip_that_says_a_smaller_size_than_it_has_is_refused_all_the_same() -> None:
    clip = clip_of([grey(9, 640, 480)] * 2, [0, 33])
    small = struct.pack(">HH", 64, 48)
    at = clip.index(b"avc1", clip.index(b"stsd")) + 4 + 24
    lying = clip[:at] + small + clip[at + 4 :]
    with pytest.raises(BadInputError):
        list(read_clip(lying, IntakeLimits(pixels=10_000)))
