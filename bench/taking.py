"""Taking frames from a session, and how long that takes."""

import time
from collections.abc import AsyncIterator, Callable

from reverie.sessions.protocol.events import AnyEvent, MediaChunk

Told = Callable[[float], None]
"""Hears of frames that were taken."""


async def take(events: AsyncIterator[AnyEvent], count: int, told: Told) -> MediaChunk:
    """Take `count` frames and return the last of them.

    Raises:
        RuntimeError: the session ended before.
    """
    async for event in events:
        if isinstance(event, MediaChunk):
            told(1)
            count -= 1
            if count == 0:
                return event
    raise RuntimeError("the session ended in the middle of a measurement")


async def seconds_for(events: AsyncIterator[AnyEvent], frames: int, told: Told) -> float:
    """Take so many frames and return how long that took."""
    started_s = time.perf_counter()
    await take(events, frames, told)
    return time.perf_counter() - started_s
