"""A track that is offered to a room, and whether the connection still carries it.

After a loss the SDK publishes tracks again by itself. Where that fails, it keeps the publication as
if nothing had happened, and only the statistics of the track tell. The SDK does not notice at all
when the server removes a track (`reports.py`).
"""

import asyncio
import logging
from contextlib import suppress

from livekit import rtc
from livekit.rtc.participant import PublishTrackError, UnpublishTrackError

from reverie.rtc.livekit.errors import NotPublishedError
from reverie.rtc.livekit.reports import ReportWatch, Traffic

LOGGER = logging.getLogger(__name__)


class PublishedTrack:
    """One published track of a participant, which can be published again after a loss."""

    def __init__(self, participant: rtc.LocalParticipant, what: str, limit_s: float) -> None:
        """Publish nothing yet.

        Args:
            participant: the publisher.
            what: `video` or `sound`, for errors.
            limit_s: limit for the room, or the SDK, to answer.
        """
        self._participant = participant
        self._what = what
        self._limit_s = limit_s
        self._published: rtc.LocalTrackPublication | None = None
        self._pending: asyncio.Future[rtc.LocalTrackPublication] | None = None  # was cancelled
        self._reports = ReportWatch()

    @property
    def offered(self) -> bool:
        """Whether the room has the track; a reconnection may lose it."""
        published = self._published  # its sid changes when the SDK publishes it again
        return published is not None and published.sid in self._participant.track_publications

    async def verify(self) -> None:
        """Count the track as lost if the connection no longer carries it."""
        published = self._published
        if published is not None and not await _is_carried(published, self._limit_s):
            self._published = None

    async def check(self) -> bool:
        """Unpublish the track if the server no longer takes it; return whether it was left.

        Call it only while the connection is up.
        """
        published = self._published
        if published is None or published.track is None:
            return True
        try:
            async with asyncio.timeout(self._limit_s):
                stats = await published.track.get_stats()
        except Exception:  # the connection has lost it, which `verify` finds
            return True
        if self._reports.is_taken(Traffic.read(stats)):
            return True
        LOGGER.warning("the server no longer takes the %s; it is published again", self._what)
        await self.withdraw(gone=False)
        return False

    async def publish(
        self, track: rtc.LocalAudioTrack | rtc.LocalVideoTrack, options: rtc.TrackPublishOptions
    ) -> None:
        """Offer a track to the room.

        Safe to cancel: what the room takes afterwards goes with `withdraw`.

        Raises:
            NotPublishedError: the room did not take it in time.
        """
        pending = asyncio.ensure_future(self._participant.publish_track(track, options))
        try:
            async with asyncio.timeout(self._limit_s):
                self._published = await asyncio.shield(pending)
                self._reports = ReportWatch()
        except asyncio.CancelledError:
            self._pending = pending
            raise
        except (TimeoutError, PublishTrackError) as error:
            pending.cancel()
            raise NotPublishedError(f"the room did not take the {self._what}: {error}") from None

    async def withdraw(self, *, gone: bool) -> None:
        """Unpublish the track, unless the room is gone. Idempotent."""
        await self._settle(gone=gone)
        published, offered = self._published, self.offered
        self._published = None
        if published is None or not offered or gone:
            return
        with suppress(TimeoutError, UnpublishTrackError):  # the room is gone, or goes without it
            async with asyncio.timeout(self._limit_s):
                await self._participant.unpublish_track(published.sid)

    async def _settle(self, *, gone: bool) -> None:
        """Wait for the answer to a `publish` that was cancelled, unless the room is gone."""
        pending, self._pending = self._pending, None
        if pending is None:
            return
        if gone:
            pending.cancel()
            return
        with suppress(TimeoutError, PublishTrackError):
            async with asyncio.timeout(self._limit_s):
                self._published = await pending


async def _is_carried(published: rtc.LocalTrackPublication, limit_s: float) -> bool:
    """Tell whether the connection still carries a published track.

    A track counts as carried when the SDK does not answer in time.
    """
    if published.track is None:
        return False
    try:
        async with asyncio.timeout(limit_s):
            await published.track.get_stats()
    except TimeoutError:
        return True
    except Exception:  # the SDK has no narrower error for a lost track
        return False
    return True
