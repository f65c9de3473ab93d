"""When a loop may run: paused or not, far enough ahead of the viewer or not, text due or not."""

from collections import deque
from dataclasses import dataclass

from reverie.engine.lead_time import LeadTime, LineTiming
from reverie.models.contract.spec import Lead

DEFAULT_LEAD = Lead()

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
        out_us: when it was put out.
        played_us: when a viewer who plays at the media's own speed has seen it.
    """

    chunk: int
    end_us: int
    media_us: int
    out_us: int
    played_us: int


@dataclass(frozen=True, slots=True)
class SeenUntil:
    """What the viewers of one loop have seen, for the other loops of the session.

    Attributes:
        media_us: the media time up to which that is.
        in_time: it counts once it can have been played; see `PlayoutLead.seen`.
        delay_us: what an acknowledgement takes when nothing waits; None where no line is known.
    """

    media_us: int
    in_time: bool = False
    delay_us: int | None = None


class PlayoutLead:
    """Keeps the media that was put out and not seen at what the line to the viewer needs.

    What was seen is told as a chunk of this loop, or as media time by the viewers of another one.
    Wall times are microseconds of the caller's monotonic clock; media runs at the same speed.
    """

    def __init__(self, bounds: Lead = DEFAULT_LEAD, frame_us: int = 0, kept: int = 1) -> None:
        """Allow the least; a viewer reports a chunk as its last frame comes up.

        Args:
            bounds: what the program declares.
            frame_us: how long that frame stays.
            kept: chunks that can be taken back: no more than those are ever unseen.
        """
        self._least, self._most_us = bounds.least_chunks, bounds.most_ms * 1000
        self._kept = max(kept, self._least)
        self._frame_us = frame_us
        self._needs = LeadTime()
        self._unseen: deque[UnseenChunk] = deque()
        self._seen = -1  # the newest chunk of which frames were seen
        self._seen_us = 0  # the media time up to which all was seen
        self._told_us: int | None = None  # when that was told
        self._in_time = False  # whether what is told counts only once it can have been played
        self._media_us = 0  # how long a chunk lasts
        self._runs_out_us: int | None = None
        self._played_us: int | None = None
        self._even_us: int | None = None  # when the next chunk is due at the declared rate
        self._held = False
        self._opened_us: int | None = None

    def full(self, now_us: int) -> bool:
        """Tell whether no further chunk may become final before the viewer has seen more."""
        self._let_go(now_us)
        full = self._is_full(now_us)
        if self._held and not full and self._opened_us is None:
            self._opened_us = now_us
        self._held = self._held or full
        return full

    @property
    def allowed_us(self) -> int:
        """How much may be unseen, beside the least: a chunk is reported when it has played."""
        needed_us = self._needs.needed_us
        if not needed_us:
            return 0
        return min(self._most_us, needed_us + max(0, self._media_us - self._frame_us))

    @property
    def unseen_us(self) -> int:
        """How much media was put out and not seen."""
        return sum(unseen.media_us for unseen in self._unseen)

    @property
    def seen_us(self) -> int:
        """The media time up to which the viewer has seen everything."""
        return self._seen_us

    @property
    def delay_us(self) -> int | None:
        """What an acknowledgement takes when nothing waits; None where no line is known."""
        return self._needs.delay_us

    @property
    def worth_us(self) -> int:
        """How much media has to be taken back for a control to show sooner.

        To make a chunk again takes time, and less than half a frame is not noticed.
        """
        return self._needs.work_us + self._frame_us // 2

    @property
    def opens_us(self) -> int | None:
        """When the next chunk may become final without a further word; None: never."""
        times = []
        if self._unseen and self._is_told(self._unseen[0]):
            times.append(self._unseen[0].played_us - self._frame_us)
        if self._unseen and self._told_us is not None and len(self._unseen) < self._kept:
            over_us = self.unseen_us + self._media_us - self.allowed_us
            if over_us <= self._unseen[0].media_us:
                times.append(self._told_us + over_us)
        return min(times, default=None)

    def put_out(self, chunk: int, media_us: int, now_us: int, *, end_us: int) -> None:
        """Note that the last frame of `chunk`, which lasts `media_us`, was put out."""
        self._played_us = max(self._played_us or now_us, now_us) + media_us
        # A viewer may have come to the end of its first frames before the last ones were made.
        if chunk > self._seen or self._in_time:
            self._unseen.append(UnseenChunk(chunk, end_us, media_us, now_us, self._played_us))
        else:
            self._seen_us = max(self._seen_us, end_us)
        self._runs_out_us = max(self.deadline_us(now_us), now_us) + media_us
        self._media_us = media_us
        if self._opened_us is not None:
            self._needs.worked(now_us - self._opened_us)
        if self._even_us is None or not self._held:
            self._even_us = max(self._even_us or now_us, now_us)
        self._even_us += media_us
        self._held, self._opened_us = False, None

    def seen(
        self,
        chunk: int,
        now_us: int,
        *,
        in_time: bool = False,
        line: LineTiming | None = None,
        waited_us: int | None = None,
    ) -> int:
        """Note that the viewer has seen every chunk up to `chunk`; older news is ignored.

        Args:
            chunk: the newest of them.
            now_us: the time.
            in_time: the viewer may have heard of it and not seen it: it counts once a viewer who
                plays at the media's own speed can have seen it.
            line: what carried the news; None: the viewer is in this process.
            waited_us: how long the first picture of that chunk had waited at the viewer; None: it
                does not tell.

        Returns:
            The media time up to which that is.
        """
        if line is None:
            self._needs.forget()
        else:
            self._acknowledge(chunk, now_us, line, waited_us)
        self._seen = max(self._seen, chunk)
        ends = [unseen.end_us for unseen in self._unseen if unseen.chunk <= chunk]
        return self._seen_until(max(ends, default=self._seen_us), now_us, in_time=in_time)

    def seen_until(self, seen: SeenUntil, now_us: int) -> None:
        """Note that the viewer has seen everything up to a media time."""
        if seen.delay_us is None:
            self._needs.forget()
        else:
            self._needs.learned(seen.delay_us, now_us)
        self._seen_until(seen.media_us, now_us, in_time=seen.in_time)

    def skip(self) -> None:
        """Forget what is unseen: it is dropped, and the viewer waits for the next frame."""
        self._unseen.clear()
        self._runs_out_us = self._played_us = self._even_us = self._told_us = None
        self._held, self._opened_us = False, None

    def deadline_us(self, now_us: int) -> int:
        """Return when the viewer runs out; the first time of asking, when there is nothing yet."""
        if self._runs_out_us is None:
            self._runs_out_us = now_us
        return self._runs_out_us

    def _is_full(self, now_us: int) -> bool:
        """Tell whether the next chunk would be more than may be unseen.

        The viewer plays on between two reports, so of the oldest chunk a part counts as seen.
        """
        if len(self._unseen) < self._least:
            return False
        if len(self._unseen) >= self._kept:
            return True
        since_us = now_us - self._told_us if self._told_us is not None else 0
        passed_us = min(since_us, self._unseen[0].media_us)
        return self.unseen_us - passed_us + self._media_us > self.allowed_us

    def _acknowledge(
        self, chunk: int, now_us: int, line: LineTiming, waited_us: int | None
    ) -> None:
        """Learn from the newest chunk that is reported for the first time."""
        told = [each for each in self._unseen if each.chunk == chunk and not self._is_told(each)]
        for unseen in told:
            took_us = now_us - unseen.out_us - max(0, unseen.media_us - self._frame_us)
            slack_us = unseen.media_us // 4
            late = self._held and self._even_us is not None and now_us > self._even_us + slack_us
            if late:
                self._even_us = now_us
            self._needs.acknowledged(took_us, line, now_us, waited_us=waited_us, late=late)

    def _seen_until(self, media_us: int, now_us: int, *, in_time: bool) -> int:
        self._in_time = in_time
        if media_us > self._seen_us:
            self._seen_us, self._told_us = media_us, now_us
        self._let_go(now_us)
        return self._seen_us

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
            self._runs_out_us = now_us + self._frame_us + self.unseen_us


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
