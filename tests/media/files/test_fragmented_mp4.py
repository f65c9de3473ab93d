"""A file that plays, whatever went into it and wherever it was cut off."""

import io
from dataclasses import replace
from itertools import pairwise

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from listening import pitch_hz
from projection import (
    Camera,
    interleaved,
    number_of,
    played,
    spoken,
)

from reverie.media import MediaFrame, SoundPacket
from reverie.media.files.fragmented_mp4 import FragmentedMp4
from reverie.media.files.mp4_survey import survey


def recorded(
    pieces: list[MediaFrame | SoundPacket], sounds: tuple[tuple[str, int], ...] = ()
) -> tuple[bytes, FragmentedMp4]:
    file = FragmentedMp4(sounds)
    out = b""
    for piece in pieces:
        if isinstance(piece, MediaFrame):
            out += file.picture(piece)
        else:
            file.sound("sound", piece)
    return out + file.finish(), file


def test_every_frame_plays_back_at_its_time() -> None:
    data, file = recorded([*Camera().film(100)])
    shown = played(data)
    assert [number_of(each) for each in shown.pictures] == [number % 25 for number in range(100)]
    assert shown.pts_us == [number * 50_000 for number in range(100)]
    assert set(shown.durations_us) == {50_000}
    assert file.recorded.frames == 100
    assert file.recorded.duration_us == 5_000_000
    assert file.recorded.size_bytes == len(data)


def test_sound_plays_beside_its_pictures() -> None:
    data, _ = recorded(interleaved(Camera().film(100), spoken(5.0)), (("sound", 1),))
    shown = played(data)
    [sound] = shown.sound
    assert abs(len(sound) / 48_000 - 5.0) < 0.05
    assert abs(pitch_hz(sound[4800:200_000], 48_000) - 440.0) < 1.0  # type: ignore[arg-type]
    steps = np.diff(shown.sound_pts_us[0])
    assert steps.min() > 0
    assert abs(shown.sound_pts_us[0][-1] / 1e6 - 5.0) < 0.05


def test_a_file_begins_with_a_key_frame_and_at_zero() -> None:
    camera = Camera()
    film = camera.film(60)  # the second key frame is number 40
    data, file = recorded([*interleaved(film[7:], spoken(3.0))], (("sound", 1),))
    shown = played(data)
    assert number_of(shown.pictures[0]) == 40 % 25
    assert shown.pts_us == [number * 50_000 for number in range(20)]
    assert shown.sound_pts_us[0][0] < 7_000  # what Opus needs to settle is not played
    assert file.recorded.left_out == 0  # what was before it is no part of it
    assert file.from_us == 2_000_000


def test_where_nothing_was_said_there_is_silence_of_the_same_length() -> None:
    packets = [*spoken(0.5, from_us=1_000_000), *spoken(0.5, from_us=3_000_000)]
    data, _ = recorded(interleaved(Camera().film(100), packets), (("sound", 1),))
    [sound] = played(data).sound
    assert abs(len(sound) / 48_000 - 5.0) < 0.05
    loud = [
        np.abs(sound[int(at * 48_000) : int((at + 0.3) * 48_000)]).max()
        for at in (0.2, 1.1, 2.0, 3.1, 4.0)
    ]
    assert [level > 0.1 for level in loud] == [False, True, False, True, False]


def test_sound_that_comes_after_its_pictures_has_its_place() -> None:
    late: list[tuple[int, MediaFrame | SoundPacket]] = []
    late += [(each.tag.pts_us, each) for each in Camera().film(60)]
    late += [(each.pts_us + 800_000, each) for each in spoken(3.0)]
    late.sort(key=lambda pair: pair[0])
    data, _ = recorded([each for _, each in late], (("sound", 1),))
    [sound] = played(data).sound
    heard = sound[: int(2.1 * 48_000)]
    assert abs(pitch_hz(heard[4800:], 48_000) - 440.0) < 1.0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("width", "height"), [(53, 41), (54, 41), (53, 40), (2, 2), (1, 1), (320, 8)]
)
def test_odd_sizes_are_padded_to_even_ones(width: int, height: int) -> None:
    data, _ = recorded([*Camera(width, height).film(30)])
    shown = played(data)
    assert len(shown.pictures) == 30
    assert shown.pictures[0].shape == (height + height % 2, width + width % 2, 3)


def test_variable_frame_rate_and_equal_times_make_no_error_and_lose_no_frame() -> None:
    camera, pts_us = Camera(), 0
    film = [camera.take(0)]
    for step_ms in (32, 33, 1, 0, -5, 500, 33) * 20:
        pts_us += step_ms * 1000
        film.append(camera.take(pts_us))
    data, file = recorded([*film])
    shown = played(data)
    assert all(later > earlier for earlier, later in pairwise(shown.pts_us))
    assert [number_of(each) for each in shown.pictures] == [each % 25 for each in range(141)]
    assert file.recorded.left_out == 0
    assert abs(file.recorded.duration_us - (pts_us + 50_000)) <= 50_000
    assert shown.pts_us[-1] + 50_000 == file.recorded.duration_us


def test_after_a_loss_nothing_is_taken_before_the_next_key_frame() -> None:
    camera = Camera()
    file = FragmentedMp4()
    out = b"".join(file.picture(each) for each in camera.film(10))
    file.lose()
    out += b"".join(file.picture(each) for each in camera.film(10))
    out += file.picture(camera.take(key=True))
    out += file.finish()
    assert played(out).pts_us == [number * 50_000 for number in [*range(10), 20]]
    assert file.recorded.left_out == 10


def test_frames_that_were_lost_on_the_way_are_counted() -> None:
    camera, file = Camera(), FragmentedMp4()
    out = b"".join(file.picture(each) for each in camera.film(10))
    camera.film(3)
    out += file.picture(replace(camera.take(), dropped=3))
    out += file.picture(camera.take(key=True))
    out += file.finish()
    assert played(out).pts_us == [number * 50_000 for number in [*range(10), 14]]
    assert file.recorded.left_out == 4


def test_a_change_of_the_bit_rate_loses_no_frame() -> None:
    camera = Camera()
    film = camera.film(30)
    camera.limit(100_000)
    film += camera.film(30)
    camera.limit(None)
    film += camera.film(30)
    data, file = recorded([*film])
    numbers = [number_of(each) for each in played(data).pictures]
    assert numbers == [each % 25 for each in range(90)]
    assert file.recorded.left_out == 0


@settings(max_examples=25, deadline=None)
@given(st.floats(0, 1))
def test_cut_off_anywhere_all_whole_fragments_play(where: float) -> None:
    size = HEADER + int(where * (len(DATA) - HEADER))
    whole = sum(end <= size for end in ENDS)
    found = survey(io.BytesIO(DATA[:size]))
    assert (found.frames, found.duration_us) == (whole * 20, whole * 1_000_000)
    if whole:
        shown = played(DATA[: found.size_bytes])
        numbers = [number_of(each) for each in shown.pictures]
        assert numbers == [number % 25 for number in range(whole * 20)]


@given(st.binary(max_size=200))
def test_what_is_no_recording_holds_nothing(data: bytes) -> None:
    assert survey(io.BytesIO(data)).frames == 0


def _parts() -> list[bytes]:
    file = FragmentedMp4()
    parts = [file.picture(each) for each in Camera().film(100)]
    return [part for part in parts if part]


PARTS = _parts()
DATA = b"".join(PARTS)
HEADER = len(PARTS[0])
ENDS = [sum(map(len, PARTS[: count + 1])) for count in range(1, len(PARTS))]


def test_no_frame_is_held_back_longer_than_a_fragment() -> None:
    assert len(PARTS) == 5  # the beginning, and a fragment for each whole second
    with av.open(io.BytesIO(DATA), "r") as file:
        assert len(list(file.decode(video=0))) == 80
