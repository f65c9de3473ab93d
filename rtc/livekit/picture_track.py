"""The world's pictures in a room: one track, paced at the program's rate, kept alive.

One picture waits for its time in the pacer, and `show` of the next one waits with it: so the task
that reads the session keeps the pace of the room, and the session's lead absorbs the rest. While no
new picture comes (paused, recovering) the newest is sent again, because a new viewer sees only what
is sent after joining.
"""

import asyncio
import logging
from dataclasses import dataclass

import numpy as np
from livekit import rtc
from numpy.typing import NDArray

from reverie.rtc.livekit.options import BridgeOptions
from reverie.rtc.livekit.published_track import PublishedTrack
from reverie.rtc.livekit.vocabulary import TRACK_VIDEO

LOGGER = logging.getLogger(__name__)

REPEAT_S = 0.5
"""After so long without a new picture the newest is sent again."""
STALL_S = 2.0
"""A pacer that takes nothing for so long has stopped."""
LARGEST_FACTOR = 4
LATE_PERIODS = 1.5
"""A picture is late after so many periods; the pacer then restarts its times with it."""


@dataclass(frozen=True, slots=True)
class PictureShape:
    """What a video track holds: size in pixels, pictures a second."""

    width: int
    height: int
    rate_hz: float


class PictureTrack:
    """A published video track. One task shows and cuts."""

    def __init__(
        self, participant: rtc.LocalParticipant, shape: PictureShape, options: BridgeOptions
    ) -> None:
        """Publish nothing yet; needs the running event loop."""
        self.shape = shape
        self.shown = 0
        self._options = options
        self._published = PublishedTrack(participant, "video", options.room_s)
        self._factor = factor(shape, options.least_px)
        # As a screencast the picture keeps its size when bandwidth is short, and loses frames.
        width, height = shape.width * self._factor, shape.height * self._factor
        self._source = rtc.VideoSource(width, height, is_screencast=True)
        self._silence = rtc.AudioSource(48_000, 1)  # the pacer needs one; it is never published
        self._pacer = self._new_pacer()
        self._newest: rtc.VideoFrame | None = None
        self._newest_s = 0.0

    @property
    def actual_fps(self) -> float:
        """Pictures sent a second, measured recently."""
        return self._pacer.actual_fps

    @property
    def offered(self) -> bool:
        """Whether the room has the track; a reconnection may lose it."""
        return self._published.offered

    async def verify(self) -> None:
        """Count the track as lost if the connection no longer carries it."""
        await self._published.verify()

    async def check(self) -> bool:
        """Unpublish the track if the server no longer takes it; return whether it was left."""
        return await self._published.check()

    async def publish(self) -> None:
        """Offer the track to the room; do nothing while it is offered already.

        Raises:
            NotPublishedError: the room did not take it in time.
        """
        if self.offered:
            return
        track = rtc.LocalVideoTrack.create_video_track(TRACK_VIDEO, self._source)
        options = rtc.TrackPublishOptions(
            source=rtc.TrackSource.SOURCE_CAMERA,
            simulcast=False,
            video_codec=rtc.VideoCodec.VP8,
            video_encoding=rtc.VideoEncoding(
                max_bitrate=self._options.max_bitrate, max_framerate=self.shape.rate_hz
            ),
        )
        await self._published.publish(track, options)

    async def show(self, picture: NDArray[np.uint8]) -> None:
        """Send a picture [H, W, 3] when its time comes; return once earlier ones are sent.

        Safe to cancel: then it is not sent.
        """
        frame = _frame(picture, self._factor)
        try:
            async with asyncio.timeout(STALL_S + 4 / self.shape.rate_hz):
                await self._pace(frame)
        except TimeoutError:  # the pacer has died, which it does not report
            LOGGER.warning("the pacer of the pictures stopped; another one replaces it")
            await self._pacer.aclose()
            self._pacer = self._new_pacer()
            await self._pacer.push(frame)
        self._newest, self._newest_s = frame, asyncio.get_running_loop().time()
        self.shown += 1

    async def cut(self) -> None:
        """Drop the waiting picture. Only for the task that shows, so that no `show` waits."""
        await self._pacer.clear_queue()

    def repeat(self) -> None:
        """Send the newest picture again, if nothing new has come for a while."""
        rested_s = asyncio.get_running_loop().time() - self._newest_s
        if self._newest is not None and rested_s >= REPEAT_S:
            self._source.capture_frame(self._newest)

    async def close(self, *, gone: bool = False) -> None:
        """Unpublish the track, unless the room is gone. Idempotent."""
        await self._pacer.aclose()
        try:
            await self._published.withdraw(gone=gone)
        finally:
            await self._silence.aclose()
            await self._source.aclose()

    async def _pace(self, frame: rtc.VideoFrame) -> None:
        # One picture at a time waits in the pacer, because those in the session can still be cut.
        # The pacer would die if it were reset while it holds a picture.
        await self._pacer.wait_for_playout()
        rested_s = asyncio.get_running_loop().time() - self._newest_s
        if rested_s > LATE_PERIODS / self.shape.rate_hz:
            self._pacer.reset()
        await self._pacer.push(frame)

    def _new_pacer(self) -> rtc.AVSynchronizer:
        return rtc.AVSynchronizer(
            audio_source=self._silence,
            video_source=self._source,
            video_fps=self.shape.rate_hz,
            video_queue_size_ms=1,  # room for one picture, at any rate up to 2000 a second
        )


def factor(shape: PictureShape, least_px: int) -> int:
    """Return the factor by which pictures are enlarged."""
    return min(max(-(-least_px // min(shape.width, shape.height)), 1), LARGEST_FACTOR)


def _frame(picture: NDArray[np.uint8], factor: int) -> rtc.VideoFrame:
    if factor > 1:
        picture = picture.repeat(factor, 0).repeat(factor, 1)
    height, width, _ = picture.shape
    return rtc.VideoFrame(width, height, rtc.VideoBufferType.RGB24, picture.tobytes())
