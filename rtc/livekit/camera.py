"""Pushes a participant's camera into the session; the newest picture replaces older ones.

The camera may change while the world runs (to the new driver's, after a hand-over), so callbacks
only record tracks and driver, and one task pushes the camera that follows from them.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

import numpy as np
from livekit import rtc

from reverie.rtc.livekit.errors import InputRefusedError
from reverie.rtc.livekit.options import BridgeOptions
from reverie.sessions import CommandError, Session, SessionError

LOGGER = logging.getLogger(__name__)

SOURCES = (rtc.TrackSource.SOURCE_CAMERA, rtc.TrackSource.SOURCE_SCREENSHARE)
"""Sources that count as a camera, best first."""


class Camera:
    """Pushes one of the cameras of the room into the session.

    Attributes:
        pushed: pictures that the session accepted.
    """

    def __init__(
        self,
        session: Session,
        options: BridgeOptions,
        refused: Callable[[str, InputRefusedError], None],
    ) -> None:
        """Create it without a camera; `refused` gets the identity and the reason of a refusal."""
        self.pushed = 0
        self._session = session
        self._options = options
        self._refused = refused
        self._offered: dict[str, dict[int, rtc.RemoteVideoTrack]] = {}
        self._driver: str | None = None
        self._changed = asyncio.Event()

    def offer(self, track: rtc.Track, source: int, identity: str) -> None:
        """Record a track of a participant. Never waits."""
        if isinstance(track, rtc.RemoteVideoTrack) and source in SOURCES:
            self._offered.setdefault(identity, {})[source] = track
            self._changed.set()

    def withdraw(self, source: int, identity: str) -> None:
        """Record that a track has ended."""
        if self._offered.get(identity, {}).pop(source, None) is not None:
            self._changed.set()

    def gone(self, identity: str) -> None:
        """Record that a participant has left."""
        if self._offered.pop(identity, None) is not None:
            self._changed.set()

    def driven_by(self, identity: str | None) -> None:
        """Record the driver."""
        self._driver = identity
        self._changed.set()

    async def show(self) -> None:
        """Push the chosen camera until cancelled."""
        while True:
            self._changed.clear()
            identity, track = self._chosen()
            if track is None or not self._wanted():
                await self._changed.wait()
                continue
            async with asyncio.TaskGroup() as tasks:
                showing = tasks.create_task(self._show(track, identity), name="camera pictures")
                await self._changed.wait()
                showing.cancel()

    def _wanted(self) -> bool:
        return any(each.kind == "video" for each in self._session.view.inputs)

    def _chosen(self) -> tuple[str, rtc.RemoteVideoTrack | None]:
        chosen = self._options.camera
        identity = (self._driver if chosen is None else chosen) or ""
        tracks = self._offered.get(identity, {})
        return identity, next((tracks[each] for each in SOURCES if each in tracks), None)

    async def _show(self, track: rtc.RemoteVideoTrack, identity: str) -> None:
        try:
            stream = rtc.VideoStream(track, capacity=1, format=rtc.VideoBufferType.RGB24)
        except AssertionError:  # the SDK raises it for a track that has ended
            LOGGER.warning("the camera of %r ended before its first picture", identity)
            return
        try:
            async for event in stream:
                await self._push(event.frame, identity)
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._options.room_s):
                    await stream.aclose()

    async def _push(self, frame: rtc.VideoFrame, identity: str) -> None:
        picture = np.frombuffer(frame.data, np.uint8).reshape(frame.height, frame.width, 3)
        try:
            async with asyncio.timeout(self._options.command_s):
                await self._session.push_video(picture)
        except CommandError as error:
            self._refused(identity, InputRefusedError.of(error.refusal))
            await asyncio.sleep(error.retry_after_s or 1.0)  # the next is refused too
        except TimeoutError:
            pass  # the session is paused: the next picture is newer
        except SessionError:
            await asyncio.sleep(1.0)  # the session has ended, which its stream tells
        else:
            self.pushed += 1
