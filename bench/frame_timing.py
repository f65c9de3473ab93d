"""Take frames from a session, and time them."""

import time
from collections.abc import AsyncIterator, Callable

from reverie.sessions.protocol.events import AnyEvent
from reverie.sessions.protocol.media_events import MediaChunk

OnFrames = Callable[[float], None]
"""Called with the number of frames that were taken."""


async def take(events: AsyncIterator[AnyEvent], count: int, on_frames: OnFrames) -> MediaChunk:
    """Take `count` frames and return the last of them.

    Raises:
        RuntimeError: the session ended too early.
    """
    async for event in events:
        if isinstance(event, MediaChunk):
            on_frames(1)
            count -= 1
            if count == 0:
                return event
    raise RuntimeError("the session ended in the middle of a measurement")


async def seconds_for(events: AsyncIterator[AnyEvent], frames: int, on_frames: OnFrames) -> float:
    """Take a number of frames and return the time in seconds."""
    started_s = time.perf_counter()
    await take(events, frames, on_frames)
    return time.perf_counter() - started_s
