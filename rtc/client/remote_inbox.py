"""Events that a client has received and not taken yet.

It keeps the guarantees of the server's outbox: after `session.interrupted` no frame from before the
cut is taken, not even one that had already arrived, and frames are numbered as they are taken.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable

from reverie.sessions import AttachmentEndedError
from reverie.sessions.protocol.events import AnyEvent, SessionAttached, SessionInterrupted
from reverie.sessions.protocol.media_events import MediaChunk, MediaComplete

WAITING_EVENTS = 4096
"""Events that may wait for the consumer; then the oldest are dropped."""


class RemoteInbox:
    """The queue between a link and its one consumer.

    Attributes:
        newest: the event that was put in last.
        waited_us: how long the event that was taken last had waited.
    """

    def __init__(self, now_us: Callable[[], int]) -> None:
        """Be empty; `now_us` is a monotonic clock."""
        self.newest: AnyEvent | None = None
        self.waited_us = 0
        self._now_us = now_us
        self._waiting: deque[tuple[AnyEvent, int]] = deque(maxlen=WAITING_EVENTS)
        self._chunks: Counter[str] = Counter()  # taken, by stream
        self._bytes: Counter[str] = Counter()
        self._ended: str | None = None
        self._news = asyncio.Event()

    def put(self, event: AnyEvent) -> None:
        """Add an event; `session.interrupted` drops the frames that it cuts."""
        if isinstance(event, SessionInterrupted):
            self._drop_frames(event.next_us)
        self.newest = event
        self._waiting.append((event, self._now_us()))
        self._news.set()

    def end(self, reason: str) -> None:
        """Declare the end; events that wait can still be taken."""
        self._ended = reason
        self._news.set()

    async def take(self) -> AnyEvent:
        """Wait for the next event and take it. Safe to cancel: then nothing is taken.

        Raises:
            AttachmentEndedError: the last event has been taken.
        """
        while not self._waiting:
            if self._ended is not None:
                raise AttachmentEndedError(self._ended)
            self._news.clear()
            await self._news.wait()
        event, came_us = self._waiting.popleft()
        self.waited_us = self._now_us() - came_us
        return self._counted(event)

    def _drop_frames(self, before_us: int) -> None:
        kept = [
            (event, came_us)
            for event, came_us in self._waiting
            if not (isinstance(event, MediaChunk) and event.pts_us < before_us)
        ]
        self._waiting.clear()
        self._waiting.extend(kept)

    def _counted(self, event: AnyEvent) -> AnyEvent:
        match event:
            case SessionAttached():  # the server counts again, too
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
