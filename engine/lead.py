"""How far generation may run ahead of the viewer, and when the viewer runs out of frames."""

from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unseen:
    """A chunk that was put out and not yet seen."""

    chunk: int
    media_us: int


class Lead:
    """Counts chunks that were put out and not seen.

    Wall times are microseconds of the caller's monotonic clock; media runs at the same speed.
    """

    def __init__(self, chunks: int, frame_us: int = 0) -> None:
        """Allow `chunks` unseen ones; a viewer reports a chunk as its last frame comes up.

        Args:
            chunks: 1 or more.
            frame_us: how long that frame stays.
        """
        self._allowed = chunks
        self._frame_us = frame_us
        self._unseen: deque[Unseen] = deque()
        self._seen = -1  # the newest chunk of which frames were seen
        self._runs_out_us: int | None = None

    @property
    def full(self) -> bool:
        """Whether no further chunk may become final before the viewer has seen more."""
        return len(self._unseen) >= self._allowed

    def put_out(self, chunk: int, media_us: int, now_us: int) -> None:
        """Note that the last frame of `chunk` was put out."""
        # A viewer may have come to the end of its first frames before the last ones were made.
        if chunk > self._seen:
            self._unseen.append(Unseen(chunk, media_us))
        self._runs_out_us = max(self.deadline_us(now_us), now_us) + media_us

    def seen(self, chunk: int, now_us: int) -> None:
        """Note that the viewer has seen every chunk up to `chunk`; older news is ignored."""
        self._seen = max(self._seen, chunk)
        if not self._unseen or chunk < self._unseen[0].chunk:
            return
        while self._unseen and self._unseen[0].chunk <= chunk:
            self._unseen.popleft()
        unseen_us = sum(unseen.media_us for unseen in self._unseen)
        self._runs_out_us = now_us + self._frame_us + unseen_us

    def skip(self) -> None:
        """Forget what is unseen: it is dropped, and the viewer waits for the next frame."""
        self._unseen.clear()
        self._runs_out_us = None

    def deadline_us(self, now_us: int) -> int:
        """Return when the viewer runs out; the first time of asking, when there is nothing yet."""
        if self._runs_out_us is None:
            self._runs_out_us = now_us
        return self._runs_out_us
