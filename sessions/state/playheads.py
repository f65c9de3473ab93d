"""What each attachment has seen, and which playhead counts.

The driver's playhead paces the generation. A viewer's does only while there is no driver. Reports
of chunks that an interrupt has dropped are ignored, however late they come.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from reverie.engine.lead_time import LineTiming
from reverie.sessions.protocol.errors import CommandError, ErrorCode


@dataclass(frozen=True, slots=True)
class SeenPosition:
    """How far a client has seen.

    Attributes:
        chunk: the last one of which every frame was shown; -1 before the first.
        pts_us: media time of the last frame that was shown; -1 before the first.
        loop: the loop of the chunk: chunks of two loops may differ in length.
        in_time: it counts once it can have been played; see `AttachOptions.in_time`.
        line: what carries the client's reports; None: it is in this process.
        waited_us: how long the first picture of the chunk had waited there; None: it does not tell.
    """

    chunk: int = -1
    pts_us: int = -1
    loop: str = ""
    in_time: bool = False
    line: LineTiming | None = field(default=None, compare=False)
    waited_us: int | None = field(default=None, compare=False)


NOTHING = SeenPosition()


@dataclass(slots=True)
class Playheads:
    """The playheads of all attachments, by a key that the caller chooses."""

    _seen: dict[int, SeenPosition] = field(default_factory=dict)
    _driver: int | None = None
    # Of each loop: chunks after the one that was returned to, up to here, no longer exist.
    _dropped_to: dict[str, int] = field(default_factory=dict)

    def enter(self, key: int, drives: bool, shown: SeenPosition, *, in_time: bool = False) -> None:
        """Count an attachment from now on; all up to `shown` counts as seen."""
        self._seen[key] = replace(shown, in_time=in_time)
        if drives:
            self._driver = key

    def leave(self, key: int) -> None:
        """Stop counting an attachment."""
        self._seen.pop(key, None)
        if self._driver == key:
            self._driver = None

    def advance(self, key: int, seen: SeenPosition, newest: int) -> bool:
        """Note what an attachment has seen; return whether that is more than before.

        Args:
            key: the attachment.
            seen: up to where.
            newest: the newest chunk that the same loop has put out.

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
        if before is None or seen.chunk <= self._dropped_to.get(seen.loop, -1):
            return False
        pts_us = max(before.pts_us, seen.pts_us)
        if before.chunk < 0 or before.loop == seen.loop:
            chunk = max(before.chunk, seen.chunk)
            after = replace(seen, chunk=chunk, pts_us=pts_us, in_time=before.in_time)
        else:  # chunks of two loops compare only by media time
            after = replace(seen, in_time=before.in_time) if seen.pts_us == pts_us else before
        self._seen[key] = after
        return after != before

    def cut(self, back_to: Mapping[str, int], newest: Mapping[str, int]) -> None:
        """Return to earlier chunks.

        Args:
            back_to: of each loop that returns, the last chunk that counts as seen.
            newest: of each loop, the last chunk that was dropped.
        """
        for loop, chunk in newest.items():
            self._dropped_to[loop] = max(self._dropped_to.get(loop, -1), chunk)
        for key, seen in self._seen.items():
            if seen.loop in back_to:
                self._seen[key] = replace(seen, chunk=back_to[seen.loop])

    def of(self, key: int) -> SeenPosition:
        """Return what an attachment has seen; nothing, if it does not count."""
        return self._seen.get(key, NOTHING)

    @property
    def governing(self) -> SeenPosition:
        """The playhead that counts: the driver's, else that of the viewer furthest on."""
        if self._driver is not None:
            return self._seen[self._driver]
        return max(self._seen.values(), key=lambda seen: (seen.pts_us, seen.chunk), default=NOTHING)
