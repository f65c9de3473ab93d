"""Waits for a room that the agent connects, and tells the room of a failure."""

import asyncio
from contextlib import suppress

from livekit import rtc

TELL_S = 5.0
REASON_CHARS = 500


async def connected(room: rtc.Room) -> None:
    """Return once the room is connected."""
    joined = asyncio.Event()

    def changed(_: int) -> None:
        if room.isconnected():
            joined.set()

    room.on("connection_state_changed", changed)
    try:
        if not room.isconnected():
            await joined.wait()
    finally:
        room.off("connection_state_changed", changed)


async def tell_failed(room: rtc.Room, why: str) -> None:
    """Tell a connected room why no world was opened."""
    if not room.isconnected():
        return
    said = {"world.status": "ended", "world.reason": why[:REASON_CHARS]}
    with suppress(TimeoutError):
        async with asyncio.timeout(TELL_S):
            await room.local_participant.set_attributes(said)
