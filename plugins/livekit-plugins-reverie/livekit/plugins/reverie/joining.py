"""Waiting for a room that somebody else connects."""

import asyncio

from livekit import rtc


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
