"""A world that goes into a room by itself, and comes back with a fresh token, or knows not to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from livekit_rig import LiveKit
from livekit_world import WORLD, Viewer, nothing_unhandled
from rtc_rig import ServerRig
from waiting import until

from reverie.rtc import connect
from reverie.rtc.livekit import (
    BridgeOptions,
    NotJoinedError,
    RoomBridge,
    RoomConnection,
    RoomConnectionOptions,
    RoomEnding,
)

OPTIONS = BridgeOptions(room_s=2.0)


class Reception:
    """Hands out tokens for one room, each once.

    Attributes:
        asked: how often one was wanted.
    """

    def __init__(self, livekit: LiveKit, room: str) -> None:
        self.asked = 0
        self.room = room
        self.silent = False
        self._livekit = livekit

    async def token(self) -> str:
        self.asked += 1
        if self.silent:
            await asyncio.Event().wait()
        return self._livekit.token(WORLD, self.room)


@asynccontextmanager
async def present(
    livekit: LiveKit, rig: ServerRig, reception: Reception
) -> AsyncIterator[tuple[RoomConnection, asyncio.Task[RoomEnding]]]:
    async with nothing_unhandled(), connect(rig.url) as session:
        connection = RoomConnection(RoomBridge(session, OPTIONS), livekit.url, reception.token)
        running = asyncio.create_task(connection.run(), name="connection")
        try:
            yield connection, running
        finally:
            running.cancel()
            await asyncio.wait([running])


async def test_a_world_that_its_room_lost_comes_back_with_a_fresh_token_and_goes_on(
    livekit: LiveKit, rig: ServerRig
) -> None:
    reception = Reception(livekit, livekit.new_room())
    async with (
        Viewer.joined(livekit, reception.room, "ada", topics=("world.events",)) as ada,
        present(livekit, rig, reception) as (connection, running),
    ):
        before = await ada.sees(lambda stamp: stamp.chunk >= 1, "the world")
        await ada.press("left")
        await ada.sees(lambda stamp: stamp.held == {"left"}, "a key")
        await livekit.fault("dismiss", reception.room, WORLD, kind="SERVER_SHUTDOWN")
        await until(lambda: connection.joins == 2, "another join")
        seen = len(ada.stamps)
        after = await ada.sees(lambda _: True, "the world again", since=seen)
        assert after.session == before.session
        assert after.chunk >= before.chunk
        await ada.sees(lambda stamp: not stamp.held, "the key let go", since=seen)
        await ada.knows(driver="ada", status="live", viewers="1")
        assert reception.asked == 2
        assert not running.done()


@pytest.mark.parametrize("reason", ["PARTICIPANT_REMOVED", "ROOM_DELETED"])
async def test_a_world_that_was_sent_away_does_not_come_back(
    livekit: LiveKit, rig: ServerRig, reason: str
) -> None:
    reception = Reception(livekit, livekit.new_room())
    async with (
        Viewer.joined(livekit, reception.room, "ada") as ada,
        present(livekit, rig, reception) as (connection, running),
    ):
        await ada.sees(lambda _: True, "the world")
        await livekit.fault("dismiss", reception.room, WORLD, kind=reason)
        await until(running.done, "the end")
        assert running.result().reason == reason.lower()
        assert connection.joins == 1


async def test_a_token_that_is_refused_is_an_error_that_says_so(
    livekit: LiveKit, rig: ServerRig
) -> None:
    async def forged() -> str:
        return "no token"

    async with nothing_unhandled(), connect(rig.url) as session:
        connection = RoomConnection(RoomBridge(session), livekit.url, forged)
        with pytest.raises(NotJoinedError) as refused:
            await connection.run()
        assert refused.value.final


async def test_a_reception_that_says_nothing_is_waited_for_within_a_limit(
    livekit: LiveKit, rig: ServerRig
) -> None:
    reception = Reception(livekit, livekit.new_room())
    reception.silent = True
    patience = RoomConnectionOptions(join_s=0.3, token_s=0.05)
    async with nothing_unhandled(), connect(rig.url) as session:
        connection = RoomConnection(RoomBridge(session), livekit.url, reception.token, patience)
        with pytest.raises(NotJoinedError, match="token_s"):
            await connection.run()
    assert reception.asked >= 1
