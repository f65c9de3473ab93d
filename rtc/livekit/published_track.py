"""A track that is offered to a room, and whether the connection still carries it.

After a loss the SDK publishes tracks anew by itself. Where that fails, it keeps the publication as
if nothing had happened, and only a question about the track itself tells. What the server takes
away tells the SDK nothing at all (`reports.py`).
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
    """One track of a participant, from its publication on; published anew when it was lost."""

    def __init__(self, participant: rtc.LocalParticipant, what: str, limit_s: float) -> None:
        """Publish nothing yet.

        Args:
            participant: whose it is.
            what: what it carries, for errors.
            limit_s: for the room, or the SDK, to answer.
        """
        self._participant = participant
        self._what = what
        self._limit_s = limit_s
        self._published: rtc.LocalTrackPublication | None = None
        self._reports = ReportWatch()

    @property
    def offered(self) -> bool:
        """Whether the room has the track; a reconnection may lose it."""
        published = self._published  # its sid changes when the SDK publishes it anew
        return published is not None and published.sid in self._participant.track_publications

    async def verify(self) -> None:
        """Count the track as lost if the connection carries it no more."""
        published = self._published
        if published is not None and not await _is_carried(published, self._limit_s):
            self._published = None

    async def check(self) -> bool:
        """Take the track back if the server takes it no longer; tell whether it was left.

        For a connection that is up.
        """
        published = self._published
        if published is None or published.track is None:
            return True
        try:
            async with asyncio.timeout(self._limit_s):
                stats = await published.track.get_stats()
        except Exception:  # without a place in the connection: `verify` is for that
            return True
        if self._reports.is_taken(Traffic.read(stats)):
            return True
        LOGGER.warning("the server takes the %s no longer; it is published again", self._what)
        await self.withdraw(gone=False)
        return False

    async def publish(
        self, track: rtc.LocalAudioTrack | rtc.LocalVideoTrack, options: rtc.TrackPublishOptions
    ) -> None:
        """Offer a track to the room.

        Raises:
            NotPublishedError: the room did not take it in time.
        """
        try:
            async with asyncio.timeout(self._limit_s):
                self._published = await self._participant.publish_track(track, options)
                self._reports = ReportWatch()
        except (TimeoutError, PublishTrackError) as error:
            raise NotPublishedError(f"the room did not take the {self._what}: {error}") from None

    async def withdraw(self, *, gone: bool) -> None:
        """Take the track back, unless the room is gone. Twice is once."""
        published, offered = self._published, self.offered
        self._published = None
        if published is None or not offered or gone:
            return
        with suppress(TimeoutError, UnpublishTrackError):  # the room is gone, or goes without it
            async with asyncio.timeout(self._limit_s):
                await self._participant.unpublish_track(published.sid)


async def _is_carried(published: rtc.LocalTrackPublication, limit_s: float) -> bool:
    """Tell whether a published track still has a place in the connection.

    One of which the SDK does not tell in time counts as carried.
    """
    if published.track is None:
        return False
    try:
        async with asyncio.timeout(limit_s):
            await published.track.get_stats()
    except TimeoutError:
        return True
    except Exception:  # the SDK has no narrower one for a track without a place
        return False
    return True
