"""What has been seen, by whom, and whose eyes count.

The driver's playhead paces the generation; viewers never do, unless nobody drives. Chunks that an
interrupt has dropped count for nothing, however late a client speaks of them.
"""

from dataclasses import dataclass, field

from reverie.sessions.errors import CommandError, ErrorCode


@dataclass(frozen=True, slots=True)
class Seen:
    """How far somebody has seen.

    Attributes:
        chunk: the last one of which every frame was shown; -1 before the first.
        pts_us: media time of the last frame that was shown; -1 before the first.
    """

    chunk: int = -1
    pts_us: int = -1


NOTHING = Seen()


@dataclass(slots=True)
class Playheads:
    """The playheads of all attachments, by a key that the caller chooses."""

    _seen: dict[int, Seen] = field(default_factory=dict)
    _driver: int | None = None
    _dropped_to: int = -1  # chunks up to here, and after the one gone back to, do not exist

    def enter(self, key: int, drives: bool, shown: Seen) -> None:
        """Count somebody from now on, who is shown all up to `shown` at once."""
        self._seen[key] = shown
        if drives:
            self._driver = key

    def leave(self, key: int) -> None:
        """Count somebody no longer."""
        self._seen.pop(key, None)
        if self._driver == key:
            self._driver = None

    def advance(self, key: int, seen: Seen, newest: int) -> bool:
        """Note what somebody has seen; tell whether it is news.

        Args:
            newest: the newest chunk that was put out.

        Raises:
            CommandError: it cannot have been seen; nothing has changed.
        """
        if seen.chunk > newest:
            raise CommandError(
                ErrorCode.NOT_SHOWN,
                f"the newest chunk is {newest}" if newest >= 0 else "no chunk was put out yet",
                field="chunk",
            )
        before = self._seen.get(key)
        if before is None or seen.chunk <= self._dropped_to:
            return False
        after = Seen(max(before.chunk, seen.chunk), max(before.pts_us, seen.pts_us))
        self._seen[key] = after
        return after != before

    def cut(self, chunk: int, newest: int) -> None:
        """Go back: `chunk` is the last that counts as seen, later ones up to `newest` are gone."""
        self._dropped_to = max(self._dropped_to, newest)
        for key, seen in self._seen.items():
            self._seen[key] = Seen(chunk, seen.pts_us)

    @property
    def governing(self) -> Seen:
        """The playhead that counts: the driver's, else that of the viewer furthest on."""
        if self._driver is not None:
            return self._seen[self._driver]
        return max(self._seen.values(), key=lambda seen: (seen.chunk, seen.pts_us), default=NOTHING)
