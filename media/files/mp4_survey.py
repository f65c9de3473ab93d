"""How much of a recording is complete, by its boxes: for one whose writing was interrupted."""

import struct
from typing import BinaryIO

from reverie.media.files.fragmented_mp4 import Recorded

_HEADER = struct.Struct(">I4s")
_LARGEST_MOOF = 2**24


def survey(file: BinaryIO) -> Recorded:
    """Return the contents of a file's complete fragments; `size_bytes` is the end of the last one.

    A file that is no recording of this package has none.
    """
    end = file.seek(0, 2)
    at = size_bytes = frames = duration_us = 0
    moof = b""
    while at + _HEADER.size <= end:
        file.seek(at)
        size, kind = _HEADER.unpack(file.read(_HEADER.size))
        if size < _HEADER.size or at + size > end:
            break
        match kind:
            case b"moof" if size <= _LARGEST_MOOF:
                moof = file.read(size - _HEADER.size)
            case b"mdat":
                durations = _durations(moof)
                frames += len(durations)
                duration_us += sum(durations)
                size_bytes = at + size
            case b"moov":
                size_bytes = at + size
        at += size
    return Recorded(frames, duration_us, size_bytes)


def _durations(moof: bytes) -> list[int]:
    """Return how long each sample of track 1 lasts, as `mp4_boxes.fragment` has written it."""
    found = moof.find(b"trun")
    if found < 0:
        return []
    (count,) = struct.unpack_from(">I", moof, found + 8)
    rows = moof[found + 16 : found + 16 + 12 * count]
    return [duration for duration, _, _ in struct.iter_unpack(">3I", rows)]
