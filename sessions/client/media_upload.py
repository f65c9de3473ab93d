"""The part of a client's session that uploads media: pictures, clips and sound.

    await session.push_image("lake.jpg")
    await session.push_clip("walk.mp4")
    async for frame in camera:
        await session.push_video(frame)

The client first scales what it pushes to the size of the input stream, on a thread.
"""

import asyncio
from abc import ABC, abstractmethod
from functools import partial
from os import PathLike

import numpy as np
from av import VideoFrame
from numpy.typing import NDArray

from reverie.media import MonotonicClock
from reverie.media.job_thread import run_apart
from reverie.sessions.client.push_commands import (
    ClipPushes,
    Pixels,
    find_input,
    picture_push,
    sound_pushes,
)
from reverie.sessions.protocol.session_view import InputView, SessionView


class MediaUpload(ABC):
    """Pushes media; a subclass defines how a command gets to the session."""

    @property
    @abstractmethod
    def view(self) -> SessionView:
        """The session, as of the last event about it."""

    async def push_video(
        self,
        frame: Pixels | VideoFrame,
        *,
        pts_us: int | None = None,
        stream: str | None = None,
        last: bool = False,
    ) -> str:
        """Push a picture of a camera, or the next frame of a clip.

        Returns when there is room for the next one: a clip waits for the model, while of a camera
        the older pictures give way. Stream the session meanwhile: it pauses while no client does.

        Args:
            frame: pixels uint8 [H, W, 3] of any size, or a decoded frame. Other aspect
                ratios are cropped evenly.
            pts_us: when it was taken; None takes the frame's own time, or now.
            stream: None takes the program's first stream of pictures.
            last: it ends the clip; then there is a receipt for it.
        """
        into = find_input(self.view.inputs, stream, "video")
        return await self._push_picture(frame, into, pts_us, last=last)

    async def push_image(
        self,
        picture: Pixels | VideoFrame | bytes | str | PathLike[str],
        *,
        stream: str | None = None,
    ) -> str:
        """Push a single picture: pixels, a file (JPEG, PNG, WebP, GIF), or its bytes.

        There is a receipt for it. Without `stream` it goes to the first stream of clips, else to
        the first stream of pictures.

        Raises:
            OSError: there is no such file.
        """
        into = find_input(self.view.inputs, stream, "video", prefers="fifo")
        return await self._push_picture(picture, into, None, last=True)

    async def push_audio(
        self,
        samples: NDArray[np.float32],
        rate_hz: int,
        *,
        pts_us: int | None = None,
        stream: str | None = None,
        last: bool = False,
    ) -> str:
        """Push sound: float32 [samples, channels] or [samples] in -1..1, at 8000 to 48,000 Hz.

        Pieces join without a gap when their times do. Returns the id of the last command.
        """
        into = find_input(self.view.inputs, stream, "audio")
        at_us, command = MonotonicClock().now_us() if pts_us is None else pts_us, ""
        for push in sound_pushes(samples, rate_hz, into, at_us, last=last):
            command = await self._ask("push_media", **push.fields)
        return command

    async def push_clip(
        self, clip: bytes | str | PathLike[str], *, stream: str | None = None
    ) -> str:
        """Push a clip: a file (MP4, MOV, WebM, AVI), or its bytes. Returns when all is pushed.

        There is a receipt for its end. Without `stream` it goes to the first stream of clips; into
        a camera's stream it plays at its own rate.

        Raises:
            CommandError: `bad_media`: it is not a clip, too large, or broken; the frames before the
                broken one were pushed, and the clip ends there.
            OSError: there is no such file.
        """
        into = find_input(self.view.inputs, stream, "video", prefers="fifo")
        pushes, command = ClipPushes(clip, into), ""
        started_s = asyncio.get_running_loop().time()
        while (push := await run_apart(pushes.next, "clip")) is not None:
            if into.merge == "latest":
                due_s = started_s + push.pts_us / 1e6
                await asyncio.sleep(due_s - asyncio.get_running_loop().time())
            command = await self._ask("push_media", **push.fields)
        if pushes.broken is not None:
            raise pushes.broken
        return command

    async def _push_picture(
        self,
        picture: Pixels | VideoFrame | bytes | str | PathLike[str],
        into: InputView,
        pts_us: int | None,
        *,
        last: bool,
    ) -> str:
        if pts_us is None:
            own_s = picture.time if isinstance(picture, VideoFrame) else None
            pts_us = MonotonicClock().now_us() if own_s is None else max(0, round(own_s * 1e6))
        push = await run_apart(partial(picture_push, picture, into, pts_us, last=last), "picture")
        return await self._ask("push_media", **push.fields)

    @abstractmethod
    async def _ask(self, type: str, **fields: object) -> str:
        """Send a command and return its id once it is accepted.

        Raises:
            CommandError: it was refused.
            SessionError: it cannot be answered: the session or the connection has ended.
        """
