"""What a client has heard of its session and has not taken yet.

It keeps the promises that the server's outbox makes: after `session.interrupted` no frame comes
that was cut, not even one that was already here, and frames are counted as they are handed out.
"""

import asyncio
from collections import Counter, deque

from reverie.sessions import AttachmentEndedError
from reverie.sessions.protocol.events import (
    AnyEvent,
    MediaChunk,
    MediaComplete,
    SessionAttached,
    SessionInterrupted,
)

WAITING_EVENTS = 4096
"""Events that wait for whoever streams; then the oldest give way."""


class RemoteInbox:
    """The queue between a link and whoever streams; one consumer takes from it.

    Attributes:
        newest: the event that was put in last.
    """

    def __init__(self) -> None:
        self.newest: AnyEvent | None = None
        self._waiting: deque[AnyEvent] = deque(maxlen=WAITING_EVENTS)
        self._chunks: Counter[str] = Counter()  # handed out, by stream
        self._bytes: Counter[str] = Counter()
        self._ended: str | None = None
        self._news = asyncio.Event()

    def put(self, event: AnyEvent) -> None:
        """Add an event; the word of a cut takes away what was cut."""
        if isinstance(event, SessionInterrupted):
            self._drop_frames(event.next_us)
        self.newest = event
        self._waiting.append(event)
        self._news.set()

    def end(self, reason: str) -> None:
        """Say that nothing more will be put in; what waits can still be taken."""
        self._ended = reason
        self._news.set()

    async def take(self) -> AnyEvent:
        """Wait for the next event and take it. Safe to cancel: then nothing is taken.

        Raises:
            AttachmentEndedError: there was the last one.
        """
        while not self._waiting:
            if self._ended is not None:
                raise AttachmentEndedError(self._ended)
            self._news.clear()
            await self._news.wait()
        return self._counted(self._waiting.popleft())

    def _drop_frames(self, before_us: int) -> None:
        kept = [
            event
            for event in self._waiting
            if not (isinstance(event, MediaChunk) and event.pts_us < before_us)
        ]
        self._waiting.clear()
        self._waiting.extend(kept)

    def _counted(self, event: AnyEvent) -> AnyEvent:
        match event:
            case SessionAttached():  # the server counts anew, too
                self._chunks.clear()
                self._bytes.clear()
            case MediaChunk(stream=stream):
                index = self._chunks[stream]
                self._chunks[stream] += 1
                self._bytes[stream] += event.size_bytes
                return event.model_copy(update={"index": index})
            case MediaComplete(stream=stream):
                sums = {"chunks": self._chunks[stream], "size_bytes": self._bytes[stream]}
                return event.model_copy(update=sums)
        return event
