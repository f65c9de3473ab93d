"""Whether a worker still does what it is there for, seen from outside.

A worker that runs no unit and has taken every message looks the same whether it rests or hangs, so
it is pinged now and then; what it does not take tells the two apart.
"""

from typing import Protocol

from reverie.gpu_pool.heartbeat import Stall
from reverie.gpu_pool.messages import Ping, ToWorker

_LONGEST_QUIET_S = 5.0
"""Between two pings; each wakes the worker, which costs it next to nothing."""


class Signs(Protocol):
    """What a worker shows of itself; see `Heartbeat`."""

    @property
    def beat(self) -> int:
        """Odd while a unit runs."""

    @property
    def taken(self) -> int:
        """Messages that it has taken."""


class Line(Protocol):
    """The way to it; see `WorkerLink`."""

    @property
    def sent(self) -> int:
        """Messages that it is to take."""

    def send(self, *messages: ToWorker) -> None:
        """Send more of them."""


class Watch:
    """Watches one worker that has loaded. No clock of its own: the time comes in."""

    def __init__(self, line: Line, signs: Signs, limit_s: float) -> None:
        """Call it hung when it stands still for longer than `limit_s` with something to do."""
        self._line = line
        self._signs = signs
        self._limit_s = limit_s
        self._stall = Stall()
        self._pinged_s = float("-inf")

    def trouble(self, now_s: float) -> str | None:
        """Return what is wrong with it at `now_s`, if anything; to be called again and again."""
        beat, taken, sent = self._signs.beat, self._signs.taken, self._line.sent
        if self._stall.observe(beat, taken, sent, now_s) > self._limit_s:
            what = "a step ran" if beat % 2 else "it took no message"
            return f"{what} for more than {self._limit_s:g} s"
        quiet_s = min(self._limit_s / 4, _LONGEST_QUIET_S)
        if taken >= sent and now_s - self._pinged_s >= quiet_s:
            self._pinged_s = now_s
            self._line.send(Ping())
        return None
