"""Clips from strangers, to frames in the order in which they are shown.

The kind of file is told by its first bytes and named to the demuxer, so that no playlist or other
file that names further files is ever followed. One frame is in memory at a time.
"""

from collections.abc import Iterator
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import BinaryIO

import av
from av import VideoFrame
from av.container import InputContainer
from av.error import FFmpegError
from av.video.stream import VideoStream

from reverie.media.errors import BadInputError
from reverie.media.pictures import DEFAULT_LIMITS, IntakeLimits, check_size

CLIP_KINDS = "MP4, MOV, WebM, AVI"

_HEAD_BYTES = 12


def read_clip(
    source: "bytes | str | PathLike[str]", limits: IntakeLimits = DEFAULT_LIMITS
) -> Iterator[VideoFrame]:
    """Yield the frames of a clip (MP4, MOV, WebM, Matroska, AVI). Blocks while it decodes.

    A frame's `time` is in seconds from the clip's own zero; it never goes back.

    Args:
        source: a path, or the bytes of a file.
        limits: frames that are larger, or come later than `clip_s`, are refused.

    Raises:
        BadInputError: it is no clip, too large or too long, or broken from here on.
        OSError: there is no such file.
    """
    with _opened(source) as file, _container(file) as container:
        yield from _frames(container, limits)


def _opened(source: "bytes | str | PathLike[str]") -> BinaryIO:
    return BytesIO(source) if isinstance(source, bytes) else Path(source).open("rb")


def is_clip(data: bytes) -> bool:
    """Tell whether a file begins as clips do."""
    return _kind(data[:_HEAD_BYTES]) is not None


def _frames(container: InputContainer, limits: IntakeLimits) -> Iterator[VideoFrame]:
    stream = _video_of(container, limits)
    newest_s = 0.0
    try:
        for frame in container.decode(stream):
            if frame.time is None:
                continue  # nobody knows when it was
            check_size(frame.width, frame.height, limits)
            newest_s = max(newest_s, frame.time)
            if newest_s > limits.clip_s:
                raise BadInputError(f"a clip lasts at most {limits.clip_s:g} s (clip_s)")
            yield frame
    except (FFmpegError, ValueError) as error:
        raise BadInputError(f"the clip is cut off or broken: {_told(error)}") from None


def _container(opened: BinaryIO) -> InputContainer:
    kind = _kind(opened.read(_HEAD_BYTES))
    opened.seek(0)
    if kind is None:
        raise BadInputError(f"this is no clip of a kind that is read here ({CLIP_KINDS})")
    try:
        container = av.open(opened, format=kind, metadata_errors="ignore")
        assert isinstance(container, InputContainer), "it was opened to be read"
        return container
    except (FFmpegError, ValueError) as error:
        raise BadInputError(f"the clip is cut off or broken: {_told(error)}") from None


def _video_of(container: InputContainer, limits: IntakeLimits) -> VideoStream:
    if not container.streams.video:
        raise BadInputError("the clip holds no pictures")
    stream = container.streams.video[0]
    if (container.duration or 0) / 1e6 > limits.clip_s:
        raise BadInputError(f"a clip lasts at most {limits.clip_s:g} s (clip_s)")
    check_size(stream.codec_context.width, stream.codec_context.height, limits)
    stream.codec_context.options = {"max_pixels": str(limits.pixels)}
    stream.codec_context.thread_count = 1
    return stream


def _kind(head: bytes) -> str | None:
    """Return ffmpeg's name of the kind of file that begins so."""
    if head[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free"):
        return "mp4"
    if head.startswith(b"\x1aE\xdf\xa3"):
        return "matroska"
    return "avi" if head.startswith(b"RIFF") and head[8:12] == b"AVI " else None


def _told(error: Exception) -> str:
    if isinstance(error, FFmpegError) and error.strerror:
        return error.strerror  # the rest is a number, and a file that has no name
    return str(error).partition("\n")[0][:120] or type(error).__name__
