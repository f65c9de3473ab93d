"""The items that wait in an outbox, in order, and how many there are of each kind."""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from reverie.sessions.protocol.events import AnyEvent
from reverie.sessions.protocol.media_events import MediaChunk, MediaInit, TextDelta


@dataclass(frozen=True, slots=True)
class OutboxFrame:
    """A picture or a packet of sound, and how to decode it."""

    init: MediaInit
    chunk: MediaChunk


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """The place of a stream's `media.complete`, whose counts are known when it is taken."""

    stream: str
    reason: str


@dataclass(slots=True)
class StreamCounts:
    """What was sent of a stream.

    Attributes:
        skipped: frames dropped since the last one that was put in (sound: taken out).
        wants_key: nothing but a key frame continues it.
        cut_us: frames before this media time are not wanted.
    """

    init: MediaInit | None = None
    chunks: int = 0
    size_bytes: int = 0
    skipped: int = 0
    wants_key: bool = False
    cut_us: int = -1
    ended: bool = False


@dataclass(frozen=True, slots=True)
class OutboxItem:
    """An item, and when it was put in."""

    item: AnyEvent | OutboxFrame | StreamEnd
    time_us: int


@dataclass(slots=True)
class OutboxQueue:
    """Items in order.

    Attributes:
        frames: pictures that wait.
        size_bytes: of all media that wait.
    """

    frames: int = 0
    size_bytes: int = 0
    _media: Counter[str] = field(default_factory=Counter)  # pictures or packets of each stream
    _items: deque[OutboxItem] = field(default_factory=deque)

    def __len__(self) -> int:
        return len(self._items)

    @property
    def events(self) -> int:
        """How many items wait that are no media."""
        return len(self._items) - self._media.total()

    @property
    def oldest(self) -> OutboxItem:
        """The item that is next."""
        return self._items[0]

    def media(self, stream: str) -> int:
        """Return how many pictures or packets of a stream wait."""
        return self._media[stream]

    def oldest_media(self, stream: str) -> MediaChunk | None:
        """Return the oldest picture or packet of a stream."""
        media = (each.item for each in self._items if isinstance(each.item, OutboxFrame))
        return next((each.chunk for each in media if each.chunk.stream == stream), None)

    def append(self, item: AnyEvent | OutboxFrame | StreamEnd, now_us: int) -> None:
        """Add an item."""
        if isinstance(item, OutboxFrame):
            self._count(item, 1)
        self._items.append(OutboxItem(item, now_us))

    def pop(self) -> None:
        """Remove the oldest item."""
        item = self._items.popleft().item
        if isinstance(item, OutboxFrame):
            self._count(item, -1)

    def clear(self) -> None:
        """Remove everything."""
        self._items.clear()
        self._media.clear()
        self.frames = self.size_bytes = 0

    def drop_media(self, stream: str, lost: Callable[[MediaChunk], bool]) -> list[MediaChunk]:
        """Remove and return the media of a stream that are lost."""
        kept: deque[OutboxItem] = deque()
        dropped = []
        for waiting in self._items:
            item = waiting.item
            if isinstance(item, OutboxFrame) and item.chunk.stream == stream and lost(item.chunk):
                self._count(item, -1)
                dropped.append(item.chunk)
            else:
                kept.append(waiting)
        self._items = kept
        return dropped

    def drop_text(self, stream: str) -> bool:
        """Remove the text of a stream; return whether there was any."""
        kept = deque(
            waiting
            for waiting in self._items
            if not (isinstance(waiting.item, TextDelta) and waiting.item.stream == stream)
        )
        dropped = len(kept) < len(self._items)
        self._items = kept
        return dropped

    def forget_oldest_event(self) -> None:
        """Remove the oldest item that is no media."""
        for index, waiting in enumerate(self._items):
            if not isinstance(waiting.item, OutboxFrame | StreamEnd):
                del self._items[index]
                return

    def _count(self, item: OutboxFrame, change: int) -> None:
        if item.init.kind == "video":
            self.frames += change
        self._media[item.chunk.stream] += change
        self.size_bytes += change * item.chunk.size_bytes
