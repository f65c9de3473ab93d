"""When a loop may run: paused or not, far enough ahead of the viewer or not, text due or not."""

from collections import deque
from dataclasses import dataclass

SLACK_US = 250_000
"""How much later than possible a word may come: frames are more urgent."""


class RunGate:
    """What a session has said about running. An unwatched loop finishes its chunk.

    Attributes:
        paused: whether it waits for `resume` or `advance`.
        refresh: what was held is planned again when controls have come.
        follows: while paused, it may run as far as the loop that leads has come.
    """

    def __init__(self) -> None:
        self.paused = False
        self.refresh = False
        self.follows = False
        self._watched = True
        self._budget = 0  # chunks that may be put out while paused

    def pause(self) -> None:
        """Run no further unit; idempotent."""
        self.paused, self.refresh = True, True
        self.skip()

    def resume(self) -> None:
        """Run again; idempotent."""
        self.paused = False
        self.skip()

    def advance(self, chunks: int) -> None:
        """Put out `chunks` more chunks, then be paused."""
        if not self.paused:
            self.pause()
        self._budget += chunks

    def follow(self) -> None:
        """While paused, go as far as the loop that leads, then be paused."""
        if not self.paused:
            self.pause()
        self.follows = True

    def watched(self, watched: bool) -> None:
        """Stop at the next chunk boundary while no viewer watches."""
        self._watched = watched

    def shown(self) -> None:
        """Note that a chunk is out."""
        self._budget = max(0, self._budget - 1)

    def skip(self) -> None:
        """Forget the chunks that were still to be put out while paused."""
        self._budget, self.follows = 0, False

    @property
    def held(self) -> bool:
        """Whether nothing may run before `resume`, `advance` or, where it follows, another loop."""
        return self.paused and not self._budget

    def open(self, begun: bool, *, behind: bool = False) -> bool:
        """Tell whether a unit may run now.

        Args:
            begun: whether it is one of a chunk that has begun.
            behind: whether the loop that leads has come further.
        """
        held = self.held and not (self.follows and behind)
        return not held and (self._watched or begun)


@dataclass(frozen=True, slots=True)
class UnseenChunk:
    """A chunk that was put out and not yet seen.

    Attributes:
        end_us: media time at which it ends.
        media_us: how long it lasts.
        played_us: when a viewer who plays at the media's own speed has seen it.
    """

    chunk: int
    end_us: int
    media_us: int
    played_us: int


class PlayoutLead:
    """Counts chunks that were put out and not seen.

    What was seen is told as a chunk of this loop, or as media time by the viewers of another one.
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
        self._unseen: deque[UnseenChunk] = deque()
        self._seen = -1  # the newest chunk of which frames were seen
        self._seen_us = 0  # the media time up to which all was seen
        self._in_time = False  # whether what is told counts only once it can have been played
        self._runs_out_us: int | None = None
        self._played_us: int | None = None

    def full(self, now_us: int) -> bool:
        """Tell whether no further chunk may become final before the viewer has seen more."""
        self._let_go(now_us)
        return len(self._unseen) >= self._allowed

    @property
    def seen_us(self) -> int:
        """The media time up to which the viewer has seen everything."""
        return self._seen_us

    @property
    def opens_us(self) -> int | None:
        """When the oldest unseen chunk counts as seen without a further word; None: never."""
        if self._unseen and self._is_told(self._unseen[0]):
            return self._unseen[0].played_us - self._frame_us
        return None

    def put_out(self, chunk: int, media_us: int, now_us: int, *, end_us: int) -> None:
        """Note that the last frame of `chunk`, which lasts `media_us`, was put out."""
        self._played_us = max(self._played_us or now_us, now_us) + media_us
        # A viewer may have come to the end of its first frames before the last ones were made.
        if chunk > self._seen or self._in_time:
            self._unseen.append(UnseenChunk(chunk, end_us, media_us, self._played_us))
        else:
            self._seen_us = max(self._seen_us, end_us)
        self._runs_out_us = max(self.deadline_us(now_us), now_us) + media_us

    def seen(self, chunk: int, now_us: int, *, in_time: bool = False) -> int:
        """Note that the viewer has seen every chunk up to `chunk`; older news is ignored.

        Args:
            chunk: the newest of them.
            now_us: the time.
            in_time: the viewer may have heard of it and not seen it: it counts once a viewer who
                plays at the media's own speed can have seen it.

        Returns:
            The media time up to which that is.
        """
        self._seen = max(self._seen, chunk)
        ends = [unseen.end_us for unseen in self._unseen if unseen.chunk <= chunk]
        return self.seen_until(max(ends, default=self._seen_us), now_us, in_time=in_time)

    def seen_until(self, media_us: int, now_us: int, *, in_time: bool = False) -> int:
        """Note that the viewer has seen everything up to a media time; see `seen`."""
        self._in_time = in_time
        self._seen_us = max(self._seen_us, media_us)
        self._let_go(now_us)
        return self._seen_us

    def skip(self) -> None:
        """Forget what is unseen: it is dropped, and the viewer waits for the next frame."""
        self._unseen.clear()
        self._runs_out_us = self._played_us = None

    def deadline_us(self, now_us: int) -> int:
        """Return when the viewer runs out; the first time of asking, when there is nothing yet."""
        if self._runs_out_us is None:
            self._runs_out_us = now_us
        return self._runs_out_us

    def _is_told(self, unseen: UnseenChunk) -> bool:
        return unseen.chunk <= self._seen or unseen.end_us <= self._seen_us

    def _let_go(self, now_us: int) -> None:
        """Forget the chunks that count as seen."""
        before = len(self._unseen)
        while self._unseen and self._is_told(self._unseen[0]):
            if self._in_time and now_us < self._unseen[0].played_us - self._frame_us:
                break
            self._unseen.popleft()
        if len(self._unseen) < before:
            unseen_us = sum(unseen.media_us for unseen in self._unseen)
            self._runs_out_us = now_us + self._frame_us + unseen_us


class TextRate:
    """Times the units of a loop without a media stream. Times are the caller's monotonic clock."""

    def __init__(self) -> None:
        """Let the first word come at once."""
        self._due_us = 0
        self._ready_us: int | None = None

    @property
    def due_us(self) -> int:
        """Nothing may run before this time."""
        return self._due_us

    def spoke(self, now_us: int, per_second: float) -> None:
        """Note that text was put out; 0 a second sets no limit."""
        if per_second > 0:
            # A loop that had to wait catches up by one word, and not by all it could have said.
            interval_us = round(1e6 / per_second)
            self._due_us = max(self._due_us + interval_us, now_us)

    def ran(self) -> None:
        """Note that a unit has run: the next one has its own deadline."""
        self._ready_us = None

    def deadline_us(self, now_us: int) -> int:
        """Return by when the unit that is ready since the first time of asking should run."""
        if self._ready_us is None:
            self._ready_us = max(now_us, self._due_us)
        return self._ready_us + SLACK_US
