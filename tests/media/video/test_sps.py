"""The codec string, read from the bytes."""

import pytest

from reverie.media import FormatError
from reverie.media.video.sps import codec_string, nal_units

SPS_31 = bytes.fromhex("6742c01fda0360ff")


def test_units_are_split_at_short_and_long_start_codes() -> None:
    stream = b"\0\0\0\1" + SPS_31 + b"\0\0\1" + b"\x68\xce" + b"\0\0\0\1" + b"\x65\x88\0"
    assert list(nal_units(stream)) == [SPS_31, b"\x68\xce", b"\x65\x88\0"]


def test_profile_flags_and_level_make_the_codec_string() -> None:
    assert codec_string(b"\0\0\0\1\x09\x10\0\0\0\1" + SPS_31) == "avc1.42c01f"


@pytest.mark.parametrize("data", [b"", b"\0\0\1", b"\0\0\1\x41\x9a\x20", b"\0\0\1\x67\x42"])
def test_bytes_without_a_whole_parameter_set_are_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        codec_string(data)
