"""Untrusted clips, to frames in display order.

The kind of file is read from its first bytes and given to the demuxer, so that it never follows a
playlist or another file that names further files. Decoders get the limit before they open, because
the demuxer lets them try the first frames. One frame is in memory at a time.
"""

from collections.abc import Iterator
from io import BytesIO
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import BinaryIO

import av
from av import VideoFrame
from av.container import InputContainer
from av.error import FFmpegError
from av.stream import Disposition
from av.video.stream import VideoStream

from reverie.media.errors import BadInputError
from reverie.media.files.clip_times import LOOKED_AT, ClipTimes, tells_order
from reverie.media.video.pictures import DEFAULT_LIMITS, IntakeLimits, check_size
from reverie.media.video.unread_kinds import HEIF_BRANDS, unread_kind

CLIP_KINDS = "MP4, MOV, WebM, AVI"

_HEAD_BYTES = 12
_STILLS = Disposition.attached_pic | Disposition.timed_thumbnails | Disposition.still_image
"""Streams that are not the clip: cover art, pictures of chapters."""


def read_clip(
    source: "bytes | str | PathLike[str]", limits: IntakeLimits = DEFAULT_LIMITS
) -> Iterator[VideoFrame]:
    """Yield the frames of a clip (MP4, MOV, WebM, Matroska, AVI). Blocks while it decodes.

    A frame's `time` is in seconds since the first one; it never goes back. Frames have square
    pixels.

    Args:
        source: a path, or the bytes of a file.
        limits: larger frames, and frames later than `clip_s`, are refused.

    Raises:
        BadInputError: it is no clip, holds no picture, is too large or too long, or is broken
            from here on.
        OSError: there is no such file.
    """
    with _opened(source) as file:
        kind = _kind_of(file)
        try:
            yield from _shown(file, kind, limits)
        except (FFmpegError, ValueError) as error:
            raise BadInputError(f"the clip is truncated or broken: {_told(error)}") from None


def _opened(source: "bytes | str | PathLike[str]") -> BinaryIO:
    return BytesIO(source) if isinstance(source, bytes) else Path(source).open("rb")


def is_clip(data: bytes) -> bool:
    """Tell whether a file begins as clips do."""
    return _kind(data[:_HEAD_BYTES]) is not None


def _shown(file: BinaryIO, kind: str, limits: IntakeLimits) -> Iterator[VideoFrame]:
    with _container(file, kind, limits) as container:
        stream = _video_of(container, kind, limits)
        packets = container.demux(stream)
        ahead = list(islice(packets, LOOKED_AT if stream.codec_context.has_b_frames else 0))
        if tells_order(kind, stream, [packet for packet in ahead if packet.size]):
            yield from _frames(stream, chain(ahead, packets), limits, told=True)
            return
    # An edit list uses display times; without them it would select other frames.
    edits = {"ignore_editlist": "1"} if kind == "mp4" else {}
    with _container(file, kind, limits, **edits) as container:
        stream = _video_of(container, kind, limits)
        yield from _frames(stream, container.demux(stream), limits, told=False)


def _frames(
    stream: VideoStream,
    packets: "Iterator[av.Packet[VideoStream]]",
    limits: IntakeLimits,
    *,
    told: bool,
) -> Iterator[VideoFrame]:
    times, count = ClipTimes(stream, told=told), 0
    for packet in packets:
        times.note(packet)
        for frame in packet.decode():
            check_size(frame.width, frame.height, limits)
            if times.stamp(frame) > limits.clip_s:
                raise BadInputError(f"a clip lasts at most {limits.clip_s:g} s (clip_s)")
            yield _square(frame, stream, limits)
            count += 1
    if not count:
        raise BadInputError("the clip holds no picture that can be shown")


def _square(frame: VideoFrame, stream: VideoStream, limits: IntakeLimits) -> VideoFrame:
    """Return a frame with square pixels; most have them already."""
    aspect = stream.sample_aspect_ratio
    if not aspect or aspect == 1 or aspect < 0:
        return frame
    width = max(1, round(frame.width * aspect))
    check_size(width, frame.height, limits)
    wide = frame.reformat(width=width)
    wide.pts, wide.time_base = frame.pts, frame.time_base
    return wide


def _kind_of(file: BinaryIO) -> str:
    head = file.read(_HEAD_BYTES)
    kind = _kind(head)
    if kind is None:
        known = f"read here ({CLIP_KINDS})"
        other = unread_kind(head)
        text = f"this is {other}, which is not" if other else "this is not a clip of a kind that is"
        raise BadInputError(f"{text} {known}")
    return kind


def _container(file: BinaryIO, kind: str, limits: IntakeLimits, **options: str) -> InputContainer:
    file.seek(0)
    options = {"max_pixels": str(limits.pixels), **options}
    container = av.open(file, format=kind, options=options, metadata_errors="ignore")
    assert isinstance(container, InputContainer), "it was opened to be read"
    return container


def _video_of(container: InputContainer, kind: str, limits: IntakeLimits) -> VideoStream:
    clips = [each for each in container.streams.video if not each.disposition & _STILLS]
    if not clips:
        raise BadInputError("the clip holds no pictures")
    # Without a decoder there is no context, whatever the types say.
    known = [each for each in clips if getattr(each, "codec_context", None) is not None]
    if not known:
        raise BadInputError("the pictures of the clip are coded in a way that is not read here")
    by_rule = (each for each in known if each.disposition & Disposition.default)
    stream = next(by_rule, known[0])
    if _length_s(container, stream, kind) > limits.clip_s:
        raise BadInputError(f"a clip lasts at most {limits.clip_s:g} s (clip_s)")
    _check_said_size(stream, limits)
    stream.codec_context.options = {"max_pixels": str(limits.pixels)}
    stream.codec_context.thread_count = 1
    return stream


def _check_said_size(stream: VideoStream, limits: IntakeLimits) -> None:
    width, height = stream.codec_context.width, stream.codec_context.height
    if not width and not height:  # as a demuxer leaves it that was not allowed to probe
        known = f"at most {limits.pixels} pixels (input_pixels)"
        raise BadInputError(f"the clip does not say that its pictures have {known}")
    check_size(width, height, limits)


def _length_s(container: InputContainer, stream: VideoStream, kind: str) -> float:
    """Return the length of the pictures from the file's header; 0 when it does not tell."""
    if stream.duration is not None and stream.time_base is not None:
        return float(stream.duration * stream.time_base)
    # Matroska holds the time of the end, and a clip may begin at any time.
    begin_us = (container.start_time or 0) if kind == "matroska" else 0
    return ((container.duration or 0) - max(0, begin_us)) / 1e6


def _kind(head: bytes) -> str | None:
    """Return ffmpeg's name of the kind of file with this beginning."""
    if head[4:8] == b"ftyp" and head[8:12] in HEIF_BRANDS:
        return None
    if head[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free"):
        return "mp4"
    if head.startswith(b"\x1aE\xdf\xa3"):
        return "matroska"
    return "avi" if head.startswith(b"RIFF") and head[8:12] == b"AVI " else None


def _told(error: Exception) -> str:
    if isinstance(error, FFmpegError) and error.strerror:
        return error.strerror  # other texts are an error number and the name of a file without one
    return str(error).partition("\n")[0][:120] or type(error).__name__
