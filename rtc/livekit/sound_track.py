"""The world's sound in a room: a track for each audio stream of the program."""

import asyncio
import logging

import numpy as np
from livekit import rtc
from numpy.typing import NDArray

from reverie.rtc.livekit.options import BridgeOptions
from reverie.rtc.livekit.published_track import PublishedTrack
from reverie.rtc.livekit.vocabulary import TRACK_AUDIO

LOGGER = logging.getLogger(__name__)

QUEUE_MS = 400
"""Limit of queued sound: twice its lead over the pictures, or it would delay them."""


class SoundTrack:
    """One stream of sound, published. One task plays; any may cut."""

    def __init__(
        self,
        participant: rtc.LocalParticipant,
        stream: str,
        rate_hz: int,
        channels: int,
        options: BridgeOptions,
    ) -> None:
        """Publish nothing yet; needs the running event loop."""
        self.rate_hz, self.channels = rate_hz, channels
        self.dropped = 0  # packets that were not taken within room_s
        self._published = PublishedTrack(participant, "sound", options.room_s)
        self._stream = stream
        self._options = options
        self._source = rtc.AudioSource(rate_hz, channels, queue_size_ms=QUEUE_MS)

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
        name = f"{TRACK_AUDIO}.{self._stream}"
        track = rtc.LocalAudioTrack.create_audio_track(name, self._source)
        options = rtc.TrackPublishOptions(source=rtc.TrackSource.SOURCE_SCREENSHARE_AUDIO)
        await self._published.publish(track, options)

    async def play(self, samples: NDArray[np.int16]) -> None:
        """Play samples [N, C]; return when there is room for more."""
        frame = rtc.AudioFrame(samples.tobytes(), self.rate_hz, self.channels, len(samples))
        try:
            async with asyncio.timeout(self._options.room_s):
                await self._source.capture_frame(frame)
        except TimeoutError:
            self.dropped += 1
        except Exception as error:  # the SDK has no narrower one for what it cannot take
            self.dropped += 1
            LOGGER.warning("a piece of sound was not taken: %s", error)

    def cut(self) -> None:
        """Drop what was not heard yet."""
        self._source.clear_queue()

    async def close(self, *, gone: bool = False) -> None:
        """Unpublish the track, unless the room is gone. Idempotent."""
        try:
            await self._published.withdraw(gone=gone)
        finally:
            await self._source.aclose()
