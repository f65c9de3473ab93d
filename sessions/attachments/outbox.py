"""What waits to be sent to one attachment: events and media in order, bounded.

Events are never dropped: when too many wait, or nothing is taken for too long, the attachment ends.
Media may be dropped: when too many frames wait, all of them are dropped up to the next key frame,
which says how many were skipped. Of too much sound the oldest packets are dropped, and the next
packet says so. Numbers are given when an item is taken, so that they count what was sent:
`sequence` of the attachment and `index` of the stream are +1 always.

    media.init    before the first chunk of a stream, and after any change of its format
    media.chunk   never after the stream's end
    media.complete  once for each stream that has begun, and last
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from reverie.sessions.attachments.outbox_queue import (
    OutboxFrame,
    OutboxItem,
    OutboxQueue,
    StreamCounts,
    StreamEnd,
)
from reverie.sessions.protocol.errors import AttachmentEndedError
from reverie.sessions.protocol.events import AnyEvent
from reverie.sessions.protocol.media_events import MediaChunk, MediaComplete, MediaInit

ROOM_DIVISOR = 16
"""A sender is slowed while more than this part of the allowed events wait."""


@dataclass(frozen=True, slots=True)
class OutboxLimits:
    """How much may wait.

    Attributes:
        frames: pictures, of all streams.
        packets: of sound, of each stream.
        bytes: of all media.
        endless: events over the limit replace the oldest instead of ending the attachment; for a
            consumer inside this process that may not listen for a while.
    """

    frames: int = 48
    packets: int = 250
    bytes: int = 64 * 2**20
    events: int = 4096
    endless: bool = False


@dataclass(slots=True)
class Outbox:
    """The queue of one attachment; one consumer takes from it.

    Attributes:
        session: the id that every event gets.
        overflowed: called once, when too many events wait.
        wants_key: called with a stream that needs a key frame to continue.
        ended: why nothing more comes in; what waits can still be taken.
        moved_us: when something was last taken, or first had to wait.
        skipped: frames and packets that were dropped, of all streams.
    """

    session: str
    now_us: Callable[[], int]
    limits: OutboxLimits
    overflowed: Callable[[], None]
    wants_key: Callable[[str], None]
    ended: str | None = None
    moved_us: int = 0
    skipped: int = 0
    sequence: int = 0
    _queue: OutboxQueue = field(default_factory=OutboxQueue)
    _streams: dict[str, StreamCounts] = field(default_factory=dict)
    _ready: asyncio.Event = field(default_factory=asyncio.Event)
    _taken: asyncio.Event = field(default_factory=asyncio.Event)

    def __len__(self) -> int:
        """How many items wait."""
        return len(self._queue)

    def put(self, event: AnyEvent) -> None:
        """Add an event other than media. After the end it is ignored."""
        if self.ended is not None:
            return
        if self._queue.events >= self.limits.events:
            if not self.limits.endless:
                self.overflowed()
                return
            self._queue.forget_oldest_event()
        self._append(event)

    def put_frame(self, init: MediaInit, chunk: MediaChunk) -> None:
        """Add a frame and how to decode it, or drop it by the rule above."""
        stream = self._streams.setdefault(chunk.stream, StreamCounts())
        if self.ended is not None or stream.ended or chunk.pts_us < stream.cut_us:
            return
        if init.kind == "audio":
            self._put_sound(init, chunk)
            return
        if self._is_full(chunk):
            self._lose_frames(chunk.stream, lambda _: True)
            stream.wants_key = True
            if not chunk.key:
                self.wants_key(chunk.stream)
        if stream.wants_key and not chunk.key:
            stream.skipped += 1 + chunk.dropped
            self.skipped += 1
            return
        lost = chunk.dropped + stream.skipped
        stream.wants_key, stream.skipped = False, 0
        self._append(OutboxFrame(init, chunk.model_copy(update={"dropped": lost})))

    def cut(self, stream: str, before_us: int) -> None:
        """Drop the frames before a media time: those that wait and those still to come."""
        self._streams.setdefault(stream, StreamCounts()).cut_us = before_us
        self._lose_frames(stream, lambda chunk: chunk.pts_us < before_us, count=False)

    def drop_text(self, stream: str) -> bool:
        """Drop the waiting text of a stream; return whether there was any."""
        return self._queue.drop_text(stream)

    def complete(self, stream: str, reason: str) -> None:
        """End a stream: `media.complete` follows its waiting frames, if it has begun."""
        state = self._streams.setdefault(stream, StreamCounts())
        if self.ended is None and not state.ended:
            state.ended = True
            self._append(StreamEnd(stream, reason))

    def drop_media(self) -> None:
        """Drop every waiting frame."""
        for stream in self._streams:
            self._lose_frames(stream, lambda _: True)

    def end(self, reason: str, last: AnyEvent) -> None:
        """Add one last event, and nothing after it; idempotent."""
        if self.ended is None:
            self._append(last)
            self.ended = reason
            self._taken.set()

    def abandon(self, reason: str) -> None:
        """Drop everything and add nothing more: no consumer will take from it again."""
        self.ended = self.ended or reason
        self._queue.clear()
        self._ready.set()
        self._taken.set()

    async def has_room(self) -> None:
        """Wait until few events wait, so that a sender that causes them is slowed in time.

        Commands under way may cause many more events, so the threshold is a small part of
        `limits.events`. Returns at once when the outbox has ended.
        """
        few = self.limits.events // ROOM_DIVISOR
        while self.ended is None and self._queue.events > few:
            self._taken.clear()
            await self._taken.wait()

    async def take(self) -> AnyEvent:
        """Wait for the next event and take it. Safe to cancel: then nothing is taken.

        Raises:
            AttachmentEndedError: the outbox has ended and is empty.
        """
        while True:
            if self._queue:
                event = self._take_one(self._queue.oldest)
                self._taken.set()
                if event is not None:
                    self.moved_us = self.now_us()
                    return event
            elif self.ended is not None:
                raise AttachmentEndedError(self.ended)
            else:
                self._ready.clear()
                await self._ready.wait()

    def _take_one(self, waiting: OutboxItem) -> AnyEvent | None:
        """Return the event to send for the oldest item; None when it needs no event."""
        item = waiting.item
        if isinstance(item, OutboxFrame):
            stream = self._streams[item.chunk.stream]
            if stream.init != item.init:
                stream.init = item.init
                return self._numbered(item.init, waiting.time_us)
            self._queue.pop()
            chunk = self._telling_loss(item, stream)
            index, stream.chunks = stream.chunks, stream.chunks + 1
            stream.size_bytes += chunk.size_bytes
            return self._numbered(chunk.model_copy(update={"index": index}), waiting.time_us)
        self._queue.pop()
        if isinstance(item, StreamEnd):
            stream = self._streams[item.stream]
            if stream.init is None:
                return None
            done = MediaComplete(
                stream=item.stream,
                reason=item.reason,
                chunks=stream.chunks,
                size_bytes=stream.size_bytes,
            )
            return self._numbered(done, waiting.time_us)
        return self._numbered(item, waiting.time_us)

    def _numbered(self, event: AnyEvent, time_us: int) -> AnyEvent:
        update = {"session": self.session, "sequence": self.sequence, "time_us": time_us}
        self.sequence += 1
        return event.model_copy(update=update)

    def _append(self, item: AnyEvent | OutboxFrame | StreamEnd) -> None:
        now_us = self.now_us()
        if not self._queue:
            self.moved_us = now_us
        self._queue.append(item, now_us)
        self._ready.set()

    def _is_full(self, chunk: MediaChunk) -> bool:
        queue = self._queue
        over = queue.size_bytes + chunk.size_bytes > self.limits.bytes
        return over or queue.frames >= self.limits.frames

    def _put_sound(self, init: MediaInit, chunk: MediaChunk) -> None:
        """Add a packet; when there are too many, the oldest of its stream is dropped."""
        if self._queue.media(chunk.stream) >= self.limits.packets:
            oldest = self._queue.oldest_media(chunk.stream)
            self._lose_frames(chunk.stream, lambda waiting: waiting is oldest)
        self._append(OutboxFrame(init, chunk))

    def _telling_loss(self, item: OutboxFrame, stream: StreamCounts) -> MediaChunk:
        """Return the chunk to send: of sound, the one after dropped packets says how many."""
        if item.init.kind == "video" or not stream.skipped:
            return item.chunk
        lost, stream.skipped = stream.skipped + item.chunk.dropped, 0
        return item.chunk.model_copy(update={"dropped": lost, "discontinuity": True})

    def _lose_frames(
        self, stream: str, lost: Callable[[MediaChunk], bool], count: bool = True
    ) -> None:
        for chunk in self._queue.drop_media(stream, lost):
            if count:
                self._streams[stream].skipped += 1 + chunk.dropped
                self.skipped += 1
