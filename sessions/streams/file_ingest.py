"""A whole uploaded file, into an input stream: a picture, or a clip frame by frame.

A clip is decoded no faster than the loop takes it, one frame ahead; into a camera's stream it plays
at its own rate.
"""

import asyncio
from collections.abc import Iterator
from functools import partial

from av import VideoFrame

from reverie.media import (
    PICTURE_FILE,
    BadInputError,
    IntakeLimits,
    MonotonicClock,
    RawVideo,
    is_clip,
    read_clip,
)
from reverie.media.files.clips import CLIP_KINDS
from reverie.media.job_thread import run_apart
from reverie.media.video.pictures import FORMATS, is_picture
from reverie.media.video.unread_kinds import unread_kind
from reverie.models.contract.controls import Merge
from reverie.sessions.protocol.errors import CommandError, ErrorCode
from reverie.sessions.streams.input_queue import MediaPush
from reverie.sessions.streams.input_stream import InputStream


async def feed(stream: InputStream, data: bytes, limits: IntakeLimits) -> int:
    """Push a file; return how many frames it had, once all are with the loop.

    A loop that is paused or not watched keeps as many as its stream's capacity.

    Safe to cancel: frames that were pushed stay, and the clip ends there.

    Raises:
        CommandError: it cannot be read (`bad_media`), or the loop takes nothing (`too_many`); the
            frames before that were pushed.
    """
    if not is_clip(data):
        if not is_picture(data):
            other = unread_kind(data)
            text = (
                f"this is {other}, which is not"
                if other
                else "this is not a picture or clip that is"
            )
            known = f"{', '.join(FORMATS)}; {CLIP_KINDS}"
            raise CommandError(ErrorCode.BAD_MEDIA, f"{text} read here ({known})", field="data")
        await _offered(stream, RawVideo(data, MonotonicClock().now_us(), PICTURE_FILE, last=True))
        return 1
    frames, count = read_clip(data, limits), 0
    started_s = asyncio.get_running_loop().time()
    ahead = await _next(frames)
    while ahead is not None:
        frame, ahead = ahead, await _next(frames)
        at_us = max(0, round((frame.time or 0.0) * 1e6))
        if stream.spec.merge is Merge.LATEST:
            due_s = started_s + at_us / 1e6
            await asyncio.sleep(due_s - asyncio.get_running_loop().time())
        await _offered(stream, RawVideo(frame, at_us, last=ahead is None))
        count += 1
    return count


async def _next(frames: Iterator[VideoFrame]) -> VideoFrame | None:
    try:
        return await run_apart(partial(next, frames, None), "clip")
    except BadInputError as error:
        raise CommandError(ErrorCode.BAD_MEDIA, str(error), field="data") from None


async def _offered(stream: InputStream, raw: RawVideo) -> None:
    """Push, and wait until it is decoded and has room."""
    settled: asyncio.Future[CommandError | None] = asyncio.get_running_loop().create_future()

    def done(error: CommandError | None) -> None:
        if not settled.done():
            settled.set_result(error)

    stream.put(MediaPush(raw, "", done))
    error = await settled
    if error is not None:
        raise error
