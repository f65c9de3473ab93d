"""From pushed media to commands."""

from typing import Any

import numpy as np
import pytest
from moving_pictures import CORNERS, clip_of, corners, file_of, grey, quarters

from reverie.media import read_picture
from reverie.sessions.client.push_commands import (
    ClipPushes,
    Push,
    find_input,
    picture_push,
    sound_pushes,
)
from reverie.sessions.protocol.errors import CommandError
from reverie.sessions.protocol.session_view import InputView

CLIP = InputView(name="clip", kind="video", merge="fifo", width=64, height=48, rate_hz=30.0)
CAMERA = InputView(name="camera", kind="video", merge="latest", width=640, height=480)
MICROPHONE = InputView(name="microphone", kind="audio", merge="fifo", rate_hz=16_000.0, channels=1)
ALL = (CAMERA, CLIP, MICROPHONE)


def bytes_of(push: Push) -> bytes:
    data = push.fields["data"]
    assert isinstance(data, bytes)
    return data


def test_the_stream_that_is_meant_is_found_or_named() -> None:
    assert find_input(ALL, None, "video") is CAMERA
    assert find_input(ALL, None, "video", prefers="fifo") is CLIP
    assert find_input(ALL, "clip", "video") is CLIP
    assert find_input(ALL, None, "audio") is MICROPHONE
    for name, kind, code in (
        ("screen", "video", "unknown_stream"),
        ("clip", "audio", "wrong_type"),
    ):
        with pytest.raises(CommandError) as refused:
            find_input(ALL, name, kind)
        assert refused.value.code == code
    with pytest.raises(CommandError, match="takes no video"):
        find_input((), None, "video")


def test_a_picture_goes_in_the_size_of_its_stream_exactly_while_it_is_small() -> None:
    push = picture_push(quarters(64, 48), CLIP, 5, last=True)
    assert push.fields["codec"] == "rgb24"
    assert push.fields["data"] == quarters(64, 48).tobytes()
    assert (push.fields["width"], push.fields["height"], push.pts_us) == (64, 48, 5)


def test_a_large_one_goes_as_a_jpeg_that_fits_a_message() -> None:
    noise = np.random.default_rng(1).integers(0, 255, (480, 640, 3), dtype=np.uint8)
    for picture in (quarters(2000, 1500), noise, file_of(quarters(640, 480))):
        push = picture_push(picture, CAMERA, 0, last=False)
        data = bytes_of(push)
        assert push.fields["codec"] == "jpeg"
        assert len(data) < 2**20
        assert read_picture(data).shape == (480, 640, 3)
    assert corners(read_picture(data)) == list(CORNERS)


def test_a_clip_goes_at_the_rate_of_its_stream_and_its_last_frame_says_so() -> None:
    clip = clip_of([grey(20 * number) for number in range(1, 11)], range(0, 166, 16 + 1))
    pushes = ClipPushes(clip, CLIP)
    fields = []
    while (push := pushes.next()) is not None:
        fields.append(push)
    assert pushes.broken is None
    assert len(fields) == pytest.approx(5, abs=1)
    assert [each.fields["last"] for each in fields] == [False] * (len(fields) - 1) + [True]


def test_a_clip_that_begins_late_is_pushed_from_0_on() -> None:
    clip = clip_of([grey(20 * number) for number in range(1, 6)], range(60_000, 60_165, 33))
    pushes, times_us = ClipPushes(clip, CLIP), []
    while (push := pushes.next()) is not None:
        times_us.append(push.pts_us)
    assert pushes.broken is None
    assert times_us == pytest.approx([0, 33_333, 66_667, 100_000, 133_333], abs=2)


def test_a_photograph_of_a_telephone_is_named_in_its_refusal() -> None:
    photo = b"\0\0\0\x18ftypheic" + bytes(64)
    with pytest.raises(CommandError, match="a HEIC photo"):
        picture_push(photo, CLIP, 0, last=True)
    pushes = ClipPushes(photo, CLIP)
    assert pushes.next() is None
    assert pushes.broken is not None
    assert "a HEIC photo" in str(pushes.broken)


def test_sound_goes_in_pieces_that_follow_on_each_other() -> None:
    samples = np.linspace(0, 1, 20_000, dtype=np.float32)
    pushes = list(sound_pushes(samples, 16_000, MICROPHONE, 1000, last=True))
    assert [each.pts_us for each in pushes] == [1000, 501_000, 1_001_000]
    assert [each.fields["last"] for each in pushes] == [False, False, True]
    joined = b"".join(bytes_of(each) for each in pushes)
    assert np.array_equal(np.frombuffer(joined, "<f4"), samples)


@pytest.mark.parametrize(
    ("samples", "rate_hz", "field"),
    [([], 16_000, "samples"), ("x", 16_000, "samples"), (np.array(["x"]), 16_000, "samples")]
    + [(np.zeros(8, np.float32), rate_hz, "rate_hz") for rate_hz in ("16000", None, 16e3, True)],
)
def test_what_is_no_sound_is_refused_with_a_type(samples: Any, rate_hz: Any, field: str) -> None:
    with pytest.raises(CommandError) as refused:
        list(sound_pushes(samples, rate_hz, MICROPHONE, 0, last=True))
    assert (refused.value.code, refused.value.field) == ("wrong_type", field)
