"""A published track: what the room takes after its publisher was cancelled does not stay there."""

import asyncio
from typing import cast

from livekit import rtc
from livekit.rtc.participant import PublishTrackError
from waiting import until

from reverie.rtc.livekit.published_track import PublishedTrack

TRACK = cast(rtc.LocalVideoTrack, None)
OPTIONS = rtc.TrackPublishOptions()


class Publication:
    """What the room knows a track by."""

    sid = "TR_1"


class SlowParticipant:
    """Stands where a room's own participant does; a track is published when `take` is set."""

    def __init__(self) -> None:
        self.take = asyncio.Event()
        self.refuses = False
        self.asked = 0
        self.track_publications: dict[str, Publication] = {}

    async def publish_track(self, _track: object, _options: object) -> Publication:
        self.asked += 1
        await self.take.wait()
        if self.refuses:
            raise PublishTrackError("no")
        self.track_publications[Publication.sid] = Publication()
        return self.track_publications[Publication.sid]

    async def unpublish_track(self, sid: str) -> None:
        del self.track_publications[sid]


async def cancelled(participant: SlowParticipant) -> PublishedTrack:
    """Return a track whose publisher was cancelled while the room had not answered."""
    track = PublishedTrack(cast(rtc.LocalParticipant, participant), "video", 5.0)
    publishing = asyncio.ensure_future(track.publish(TRACK, OPTIONS))
    await until(lambda: participant.asked == 1, "the room to be asked")
    publishing.cancel()
    await asyncio.wait([publishing])
    assert publishing.cancelled()
    return track


async def test_a_track_that_the_room_takes_after_a_cancel_is_withdrawn() -> None:
    participant = SlowParticipant()
    track = await cancelled(participant)
    participant.take.set()
    await track.withdraw(gone=False)
    assert participant.track_publications == {}


async def test_a_room_that_refuses_after_a_cancel_has_nothing_to_withdraw() -> None:
    participant = SlowParticipant()
    participant.refuses = True
    track = await cancelled(participant)
    participant.take.set()
    await track.withdraw(gone=False)
    assert participant.track_publications == {}


async def test_a_room_that_is_gone_is_not_waited_for() -> None:
    participant = SlowParticipant()
    track = await cancelled(participant)
    async with asyncio.timeout(5.0):
        await track.withdraw(gone=True)
