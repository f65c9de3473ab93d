"""Clips that are less simple than most: cover art, photographs, odd beginnings, odd orders."""

import io
import struct
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from moving_pictures import CORNERS, clip_of, corners, grey, quarters

from reverie.media import BadInputError, IntakeLimits, is_clip, read_clip, upright_pixels

INPUTS = Path(__file__).parent.parent.parent / "inputs"
LEVELS = list(range(10, 250, 12))
TIMES_MS = [index * 40 for index in range(len(LEVELS))]


def shown(clip: bytes | Path, limits: IntakeLimits | None = None) -> list[tuple[int, int]]:
    """Return when each frame is shown, in ms, and how bright it is."""
    frames = read_clip(clip, limits or IntakeLimits())
    return [
        (round((frame.time or 0) * 1000), round(frame.to_ndarray(format="gray").mean()))
        for frame in frames
    ]


def in_order(frames: list[tuple[int, int]]) -> bool:
    """Whether all of `LEVELS` are there, once each, rising, at times that are apart."""
    levels = [min(LEVELS, key=lambda each: abs(each - level)) for _, level in frames]
    apart = np.diff([time for time, _ in frames])
    return levels == LEVELS and frames[0][0] == 0 and bool((abs(apart - 40) <= 7).all())


def avi(codec: str, **options: str) -> bytes:
    """Return an AVI at 25 frames a second."""
    file = io.BytesIO()
    with av.open(file, "w", format="avi") as container:
        stream: Any = container.add_stream(codec, rate=25, options=options)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number, level in enumerate(LEVELS):
            frame = av.VideoFrame.from_ndarray(grey(level), "rgb24")
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return file.getvalue()


def without(clip: bytes, *boxes: bytes) -> bytes:
    """Return an MP4 that lacks some boxes."""
    for box in boxes:
        at = clip.index(box)
        clip = clip[:at] + b"free" + clip[at + 4 :]
    return clip


def levels_mp4(**options: str) -> bytes:
    return clip_of([grey(level) for level in LEVELS], TIMES_MS, **options)


def test_cover_art_is_no_part_of_a_clip() -> None:
    assert shown(INPUTS / "cover.mp4") == shown(INPUTS / "plain.mp4")
    assert len(shown(INPUTS / "cover.mp4")) == 20


def test_a_song_with_a_cover_holds_no_pictures() -> None:
    song = io.BytesIO()
    with av.open(song, "w", format="mp4") as container:
        sound: Any = container.add_stream("aac", rate=48_000)
        cover: Any = container.add_stream("mjpeg", rate=1)
        cover.width, cover.height, cover.pix_fmt = 64, 48, "yuvj420p"
        cover.disposition = av.stream.Disposition.attached_pic
        silence = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
        silence.sample_rate = 48_000
        container.mux(cover.encode(av.VideoFrame.from_ndarray(grey(9), "rgb24")))
        container.mux(cover.encode(None))
        container.mux(sound.encode(silence))
        container.mux(sound.encode(None))
    with pytest.raises(BadInputError, match="the clip holds no pictures"):
        shown(song.getvalue())


def test_of_several_tracks_of_pictures_the_one_that_players_show_is_shown() -> None:
    file = io.BytesIO()
    with av.open(file, "w", format="matroska") as container:
        tracks: list[Any] = [container.add_stream("libx264", rate=25) for _ in range(2)]
        for track, width in zip(tracks, (64, 32), strict=True):
            track.width, track.height, track.pix_fmt = width, 48, "yuv420p"
        tracks[0].disposition = av.stream.Disposition(0)
        tracks[1].disposition = av.stream.Disposition.default
        for track, level in zip(tracks, (40, 200), strict=True):
            frame = av.VideoFrame.from_ndarray(grey(level, track.width), "rgb24")
            frame.pts = 0
            container.mux(track.encode(frame))
            container.mux(track.encode(None))
    [(_, level)] = shown(file.getvalue())
    assert abs(level - 200) < 4


def test_pictures_in_a_way_that_is_not_read_are_refused() -> None:
    clip = levels_mp4()
    at = clip.index(b"avc1", clip.index(b"stsd"))
    with pytest.raises(BadInputError, match="coded in a way that is not read here"):
        shown(clip[:at] + b"zzzz" + clip[at + 4 :])


def test_a_clip_that_yields_no_picture_at_all_is_refused() -> None:
    clip = levels_mp4(bf="0", g="100")
    sizes = clip.index(b"stsz") + 4 + 12
    [first] = struct.unpack_from(">I", clip, sizes)
    at = clip.index(b"mdat") + 4
    spoilt = clip[:at] + bytes(first) + clip[at + first :]  # without its only key frame
    with pytest.raises(BadInputError):
        shown(spoilt)
    empty = io.BytesIO()
    with av.open(empty, "w", format="mp4") as container:
        stream: Any = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        container.start_encoding()
    with pytest.raises(BadInputError):
        shown(empty.getvalue())


def test_a_photograph_of_a_telephone_is_refused_by_name() -> None:
    photo = (INPUTS / "tiles.heic").read_bytes()
    assert not is_clip(photo)
    with pytest.raises(BadInputError, match="a HEIC photo, which is not read here"):
        shown(photo)


@pytest.mark.parametrize("name", ["from_130_s.webm", "from_60_s.mp4"])
def test_a_clip_that_does_not_begin_at_0_begins_at_once(name: str) -> None:
    frames = shown(INPUTS / name)
    assert [time for time, _ in frames] == [100 * number for number in range(10)]


@pytest.mark.parametrize("kind", ["mp4", "matroska"])
def test_a_clip_is_too_long_by_its_own_length_wherever_it_begins(kind: str) -> None:
    for begin_ms in (0, 50_000):
        times = [begin_ms + time for time in (0, 1000, 2000, 3000)]
        clip = clip_of([grey(level) for level in LEVELS[:4]], times, kind=kind)
        assert len(shown(clip, IntakeLimits(clip_s=3.5))) == 4
        with pytest.raises(BadInputError, match=r"at most 1\.5 s"):
            shown(clip, IntakeLimits(clip_s=1.5))


def test_times_before_0_are_times_like_others() -> None:
    file = io.BytesIO()
    options = {"avoid_negative_ts": "disabled", "use_editlist": "0"}
    with av.open(file, "w", format="mp4", options=options) as container:
        stream: Any = container.add_stream("libx264", rate=25, options={"bf": "0"})
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        stream.codec_context.time_base = stream.time_base = Fraction(1, 1000)
        for level, time in zip(LEVELS, TIMES_MS, strict=True):
            frame = av.VideoFrame.from_ndarray(grey(level), "rgb24")
            frame.pts, frame.time_base = time - 500, Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    assert in_order(shown(file.getvalue()))


@pytest.mark.parametrize(
    ("codec", "options"),
    [("libx264", {"bf": "3"}), ("mpeg4", {"bf": "2", "qmax": "2"}), ("mpeg4", {})],
)
def test_an_avi_is_shown_in_its_order_and_every_frame_once(
    codec: str, options: dict[str, str]
) -> None:
    assert in_order(shown(avi(codec, **options)))


@pytest.mark.parametrize("lacks", [(), (b"ctts",), (b"ctts", b"edts"), (b"edts",)])
@pytest.mark.parametrize("b_frames", ["0", "3"])
def test_an_mp4_that_does_not_say_its_order_is_shown_in_it_all_the_same(
    lacks: tuple[bytes, ...], b_frames: str
) -> None:
    clip = levels_mp4(bf=b_frames)
    assert in_order(shown(without(clip, *(box for box in lacks if box in clip))))


def test_an_edit_list_leaves_out_what_was_cut() -> None:
    clip = levels_mp4(bf="3", g="100")
    at = clip.index(b"elst") + 4 + 8
    length, media_time = struct.unpack_from(">Ii", clip, at)
    scale = struct.unpack_from(">I", clip, clip.index(b"mdhd") + 4 + 12)[0]
    cut = struct.pack(">Ii", length - 400, media_time + scale * 400 // 1000)
    frames = shown(clip[:at] + cut + clip[at + 8 :])
    assert [min(LEVELS, key=lambda each: abs(each - level)) for _, level in frames] == LEVELS[10:]
    assert frames[0][0] == 0


def test_pixels_that_are_not_square_are_shown_as_a_player_shows_them() -> None:
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream: Any = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        stream.codec_context.sample_aspect_ratio = Fraction(2, 1)
        container.mux(stream.encode(av.VideoFrame.from_ndarray(quarters(64, 48), "rgb24")))
        container.mux(stream.encode(None))
    [frame] = read_clip(file.getvalue())
    picture = upright_pixels(frame, IntakeLimits())
    assert picture.shape == (48, 128, 3)
    assert corners(picture) == list(CORNERS)
    with pytest.raises(BadInputError, match="pixels"):
        list(read_clip(file.getvalue(), IntakeLimits(pixels=64 * 48)))
