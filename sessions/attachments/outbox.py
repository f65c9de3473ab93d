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
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from reverie.sessions.protocol.errors import AttachmentEndedError
from reverie.sessions.protocol.events import AnyEvent
from reverie.sessions.protocol.media_events import MediaChunk, MediaComplete, MediaInit, TextDelta

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


@dataclass(frozen=True, slots=True)
class _Frame:
    init: MediaInit
    chunk: MediaChunk


@dataclass(frozen=True, slots=True)
class _StreamEnd:
    stream: str
    reason: str


@dataclass(slots=True)
class _Stream:
    """What was sent of a stream."""

    init: MediaInit | None = None
    chunks: int = 0
    size_bytes: int = 0
    waiting: int = 0
    skipped: int = 0  # frames dropped since the last one that was put in (sound: taken out)
    wants_key: bool = False
    cut_us: int = -1  # frames before this media time are not wanted
    ended: bool = False


_Item = AnyEvent | _Frame | _StreamEnd


@dataclass(slots=True)
class _Waiting:
    item: _Item
    time_us: int


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
    _items: deque[_Waiting] = field(default_factory=deque)
    _streams: dict[str, _Stream] = field(default_factory=dict)
    _frames: int = 0  # pictures that wait
    _media: int = 0  # all media that wait
    _bytes: int = 0
    _ready: asyncio.Event = field(default_factory=asyncio.Event)
    _taken: asyncio.Event = field(default_factory=asyncio.Event)

    def __len__(self) -> int:
        """How many items wait."""
        return len(self._items)

    def put(self, event: AnyEvent) -> None:
        """Add an event other than media. After the end it is ignored."""
        if self.ended is not None:
            return
        if len(self._items) - self._media >= self.limits.events:
            if not self.limits.endless:
                self.overflowed()
                return
            self._forget_oldest_event()
        self._append(event)

    def put_frame(self, init: MediaInit, chunk: MediaChunk) -> None:
        """Add a frame and how to decode it, or drop it by the rule above."""
        stream = self._streams.setdefault(chunk.stream, _Stream())
        if self.ended is not None or stream.ended or chunk.pts_us < stream.cut_us:
            return
        if init.kind == "audio":
            self._put_sound(init, chunk, stream)
            return
        if self._frames >= self.limits.frames or self._bytes + chunk.size_bytes > self.limits.bytes:
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
        self._append_media(init, chunk.model_copy(update={"dropped": lost}))

    def cut(self, stream: str, before_us: int) -> None:
        """Drop the frames before a media time: those that wait and those still to come."""
        self._streams.setdefault(stream, _Stream()).cut_us = before_us
        self._lose_frames(stream, lambda chunk: chunk.pts_us < before_us, count=False)

    def drop_text(self, stream: str) -> bool:
        """Drop the waiting text of a stream; return whether there was any."""
        kept = deque(
            waiting
            for waiting in self._items
            if not (isinstance(waiting.item, TextDelta) and waiting.item.stream == stream)
        )
        dropped = len(kept) < len(self._items)
        self._items = kept
        return dropped

    def complete(self, stream: str, reason: str) -> None:
        """End a stream: `media.complete` follows its waiting frames, if it has begun."""
        state = self._streams.setdefault(stream, _Stream())
        if self.ended is None and not state.ended:
            state.ended = True
            self._append(_StreamEnd(stream, reason))

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
        self._items.clear()
        self._frames = self._media = self._bytes = 0
        self._ready.set()
        self._taken.set()

    async def has_room(self) -> None:
        """Wait until few events wait, so that a sender that causes them is slowed in time.

        Commands under way may cause many more events, so the threshold is a small part of
        `limits.events`. Returns at once when the outbox has ended.
        """
        few = self.limits.events // ROOM_DIVISOR
        while self.ended is None and len(self._items) - self._media > few:
            self._taken.clear()
            await self._taken.wait()

    async def take(self) -> AnyEvent:
        """Wait for the next event and take it. Safe to cancel: then nothing is taken.

        Raises:
            AttachmentEndedError: the outbox has ended and is empty.
        """
        while True:
            if self._items:
                event = self._take_one(self._items[0])
                self._taken.set()
                if event is not None:
                    self.moved_us = self.now_us()
                    return event
            elif self.ended is not None:
                raise AttachmentEndedError(self.ended)
            else:
                self._ready.clear()
                await self._ready.wait()

    def _take_one(self, waiting: _Waiting) -> AnyEvent | None:
        """Return the event to send for the oldest item; None when it needs no event."""
        item = waiting.item
        if isinstance(item, _Frame):
            stream = self._streams[item.chunk.stream]
            if stream.init != item.init:
                stream.init = item.init
                return self._numbered(item.init, waiting.time_us)
            self._items.popleft()
            self._count_out(item)
            chunk = self._telling_loss(item, stream)
            index, stream.chunks = stream.chunks, stream.chunks + 1
            stream.size_bytes += chunk.size_bytes
            return self._numbered(chunk.model_copy(update={"index": index}), waiting.time_us)
        self._items.popleft()
        if isinstance(item, _StreamEnd):
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

    def _append(self, item: _Item) -> None:
        now_us = self.now_us()
        if not self._items:
            self.moved_us = now_us
        self._items.append(_Waiting(item, now_us))
        self._ready.set()

    def _append_media(self, init: MediaInit, chunk: MediaChunk) -> None:
        self._frames += init.kind == "video"
        self._media += 1
        self._bytes += chunk.size_bytes
        self._streams[chunk.stream].waiting += 1
        self._append(_Frame(init, chunk))

    def _count_out(self, item: _Frame) -> None:
        self._frames -= item.init.kind == "video"
        self._media -= 1
        self._bytes -= item.chunk.size_bytes
        self._streams[item.chunk.stream].waiting -= 1

    def _put_sound(self, init: MediaInit, chunk: MediaChunk, stream: _Stream) -> None:
        """Add a packet; when there are too many, the oldest of its stream is dropped."""
        if stream.waiting >= self.limits.packets:
            oldest = self._oldest(chunk.stream)
            self._lose_frames(chunk.stream, lambda waiting: waiting is oldest)
        self._append_media(init, chunk)

    def _oldest(self, stream: str) -> MediaChunk | None:
        found = (item.chunk for item in self._media_of(stream))
        return next(found, None)

    def _media_of(self, stream: str) -> Iterator[_Frame]:
        for waiting in self._items:
            if isinstance(waiting.item, _Frame) and waiting.item.chunk.stream == stream:
                yield waiting.item

    def _telling_loss(self, item: _Frame, stream: _Stream) -> MediaChunk:
        """Return the chunk to send: of sound, the one after dropped packets says how many."""
        if item.init.kind == "video" or not stream.skipped:
            return item.chunk
        lost, stream.skipped = stream.skipped + item.chunk.dropped, 0
        return item.chunk.model_copy(update={"dropped": lost, "discontinuity": True})

    def _lose_frames(
        self, stream: str, lost: Callable[[MediaChunk], bool], count: bool = True
    ) -> None:
        kept: deque[_Waiting] = deque()
        for waiting in self._items:
            item = waiting.item
            if isinstance(item, _Frame) and item.chunk.stream == stream and lost(item.chunk):
                self._count_out(item)
                if count:
                    self._streams[stream].skipped += 1 + item.chunk.dropped
                    self.skipped += 1
            else:
                kept.append(waiting)
        self._items = kept

    def _forget_oldest_event(self) -> None:
        for index, waiting in enumerate(self._items):
            if not isinstance(waiting.item, (_Frame, _StreamEnd)):
                del self._items[index]
                return
