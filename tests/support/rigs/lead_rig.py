"""A loop at its lead, a line and a viewer, on a clock of their own that ticks in milliseconds."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random

from reverie.engine.lead_time import LineTiming
from reverie.engine.pacing import DEFAULT_LEAD, PlayoutLead
from reverie.models.contract.spec import Lead

MS = 1000
SECOND = 1_000_000


@dataclass
class LeadRig:
    """A model of one frame a chunk, whose steps overlap with nothing.

    Attributes:
        rate_hz: of the frames.
        step_ms: what one takes from the moment at which it may be made.
        trip_ms: of the line, there and back, at a time; None: nothing gets through.
        jitter_ms: each way is longer by up to half of this.
        tells: whether the viewer says how long frames had waited.
        clock: the viewer's own clock at a time, which is all that it has.
        seen: times at which frames were shown; likewise how long each `waited`.
    """

    rate_hz: float = 24.0
    step_ms: float = 30.0
    trip_ms: Callable[[int], float | None] = lambda _: 0.0
    jitter_ms: float = 0.0
    tells: bool = True
    acknowledges: bool = True
    in_time: bool = False
    bounds: Lead = DEFAULT_LEAD
    clock: Callable[[int], int] = lambda now_us: now_us
    now_us: int = 0
    seen: list[int] = field(default_factory=list)
    waited: list[int] = field(default_factory=list)
    most_unseen: int = 0

    def __post_init__(self) -> None:
        self.frame_us = round(SECOND / self.rate_hz)
        self.lead = PlayoutLead(self.bounds, self.frame_us, self.bounds.most_chunks(self.frame_us))
        self.chunks = 0
        self._done_us: int | None = None
        self._down: deque[tuple[int, ...]] = deque()  # when it comes, and which chunk
        self._up: deque[tuple[int, ...]] = deque()  # when, chunk, waited
        self._ready: deque[tuple[int, int]] = deque()  # on the viewer's clock
        self._due_us: int | None = None
        self._random = Random(1)

    def run(self, seconds: float) -> "LeadRig":
        """Let time pass."""
        for _ in range(round(seconds * 1000)):
            self.now_us += MS
            self._generate()
            self._show()
            self._hear()
            self.most_unseen = max(self.most_unseen, self.lead.unseen_us)
        return self

    def rate(self, since_s: float, until_s: float | None = None) -> float:
        """Return the frames a second that were shown in a stretch of time."""
        until_us = self.now_us if until_s is None else until_s * SECOND
        shown = sum(since_s * SECOND < at <= until_us for at in self.seen)
        return shown / (until_us / SECOND - since_s)

    def waits_ms(self, since_s: float) -> list[float]:
        """Return how long frames had waited at the viewer since then, shortest first."""
        shown = zip(self.seen, self.waited, strict=True)
        return sorted(waited / MS for at, waited in shown if at > since_s * SECOND)

    def _generate(self) -> None:
        if self._done_us is None and not self.lead.full(self.now_us):
            self._done_us = self.now_us + round(self.step_ms * MS)
        if self._done_us is not None and self.now_us >= self._done_us:
            end_us = (self.chunks + 1) * self.frame_us
            self.lead.put_out(self.chunks, self.frame_us, self.now_us, end_us=end_us)
            self._carry(self._down, self.chunks)
            self.chunks, self._done_us = self.chunks + 1, None

    def _show(self) -> None:
        own_us = self.clock(self.now_us)
        while self._down and self._down[0][0] <= self.now_us:
            self._ready.append((self._down.popleft()[1], own_us))
        while self._ready and (self._due_us is None or own_us >= self._due_us):
            chunk, ready_us = self._ready.popleft()
            if self._due_us is None or own_us - self._due_us > 20 * MS:
                self._due_us = own_us  # a late one is shown at once, and those after it by it
            self._due_us += self.frame_us
            self.seen.append(self.now_us)
            self.waited.append(max(0, own_us - ready_us))
            if self.acknowledges:
                self._carry(self._up, chunk, max(0, own_us - ready_us))

    def _hear(self) -> None:
        while self._up and self._up[0][0] <= self.now_us:
            _, chunk, waited_us = self._up.popleft()
            trip_ms = self.trip_ms(self.now_us) or 0.0
            line = LineTiming(round(trip_ms * MS), round(self.jitter_ms / 4 * MS))
            told_us = waited_us if self.tells else None
            self.lead.seen(chunk, self.now_us, in_time=self.in_time, line=line, waited_us=told_us)

    def _carry(self, way: deque[tuple[int, ...]], *what: int) -> None:
        """Put something on its way, behind what is on it already."""
        trip_ms = self.trip_ms(self.now_us)
        at_us = self.now_us
        while trip_ms is None:  # sent again until the line is back
            at_us += 100 * MS
            trip_ms = self.trip_ms(at_us)
        at_us += round((trip_ms / 2 + self._random.uniform(0, self.jitter_ms / 2)) * MS)
        way.append((max(at_us, way[-1][0] if way else 0), *what))


def steps(*changes: tuple[float, float | None]) -> Callable[[int], float | None]:
    """Return round trips that change: each pair is since when, in seconds, and how long it is."""

    def trip_ms(now_us: int) -> float | None:
        current: float | None = 0.0
        for since_s, trip in changes:
            if now_us >= since_s * SECOND:
                current = trip
        return current

    return trip_ms


def middle(values: Iterable[float]) -> float:
    """Return the median."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2]
