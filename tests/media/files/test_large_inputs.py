"""Small files with much in them: limits are looked at first, and what is allowed costs little.

The factors are generous: what is measured beside them is several times as much.
"""

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from moving_pictures import clip_of, file_of
from peak_memory import peak_mib_of
from PIL import Image

SIDE = 4096
PLAIN_MIB = SIDE * SIDE / 2**20
"""One byte a pixel."""


def png(channels: int, kind: int) -> bytes:
    """Return a PNG of 4096 x 4096 black pixels, of some 65 kB."""

    def chunk(name: bytes, data: bytes) -> bytes:
        body = name + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    packer = zlib.compressobj(9)
    row = bytes(1 + SIDE * channels)
    data = b"".join(packer.compress(row) for _ in range(SIDE)) + packer.flush()
    head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, kind, 0, 0, 0)
    colours = chunk(b"PLTE", bytes(768)) + chunk(b"tRNS", bytes(256)) if kind == 3 else b""
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + colours
        + chunk(b"IDAT", data)
        + chunk(b"IEND", b"")
    )


def black(kind: str, **options: bool) -> bytes:
    return file_of(Image.new("RGB", (SIDE, SIDE)), kind, **options)


PICTURES: dict[str, tuple[Callable[[], bytes], float]] = {
    "grey PNG": (lambda: png(1, 0), 3 * PLAIN_MIB),
    "PNG": (lambda: png(3, 2), 7 * PLAIN_MIB),
    "PNG of a palette": (lambda: png(1, 3), 4 * PLAIN_MIB),
    "transparent PNG": (lambda: png(4, 6), 8 * PLAIN_MIB),
    "GIF": (lambda: black("GIF"), 4 * PLAIN_MIB),
    "JPEG": (lambda: black("JPEG"), 2 * PLAIN_MIB),
    "progressive JPEG": (lambda: black("JPEG", progressive=True), 7 * PLAIN_MIB),
}
"""How much of them may be in memory: the largest layout of Pillow has four bytes a pixel."""


@pytest.mark.parametrize("name", list(PICTURES))
def test_a_large_picture_is_in_memory_once_and_no_more(name: str, tmp_path: Path) -> None:
    make, most_mib = PICTURES[name]
    file = tmp_path / "picture"
    file.write_bytes(make())
    what, peak_mib = peak_mib_of("picture", file)
    assert what == "shown"
    assert peak_mib < most_mib


@pytest.mark.parametrize("kind", ["matroska", "mp4", "avi"])
def test_a_clip_beyond_the_limit_is_refused_before_a_frame_is_decoded(
    kind: str, tmp_path: Path
) -> None:
    file, whole = tmp_path / "clip", np.zeros((2 * SIDE, 2 * SIDE, 3), np.uint8)
    file.write_bytes(clip_of([whole], [0], kind=kind, preset="ultrafast"))
    what, peak_mib = peak_mib_of("clip", file)
    assert what == "refused"
    assert peak_mib < 4 * PLAIN_MIB  # one such frame is 6 times that


def test_a_frame_that_is_wanted_small_is_never_large_in_colours(tmp_path: Path) -> None:
    file = tmp_path / "clip"
    file.write_bytes(
        clip_of([np.zeros((SIDE, SIDE, 3), np.uint8)] * 2, [0, 33], preset="ultrafast")
    )
    what, peak_mib = peak_mib_of("clip", file)
    assert what == "shown"
    assert peak_mib < 8 * PLAIN_MIB  # two frames of 1.5 bytes a pixel, and what decoders keep
