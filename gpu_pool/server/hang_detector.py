"""Whether a worker still makes progress, seen from outside.

A worker that runs no unit and has taken every message looks the same whether it rests or hangs, so
it is pinged now and then; what it does not take tells the two apart.
"""

from typing import Protocol

from reverie.gpu_pool.wire.heartbeat import Stall
from reverie.gpu_pool.wire.messages import Ping, ToWorker

_LONGEST_QUIET_S = 5.0
"""Between two pings; each wakes the worker, which costs it next to nothing."""


class Liveness(Protocol):
    """What a worker shows of itself; see `Heartbeat`."""

    @property
    def beat(self) -> int:
        """Odd while a unit runs."""

    @property
    def taken(self) -> int:
        """Messages that it has taken."""


class MessageSender(Protocol):
    """The way to it; see `WorkerLink`."""

    @property
    def sent(self) -> int:
        """Messages that it is to take."""

    def send(self, *messages: ToWorker) -> None:
        """Send more of them."""


class HangDetector:
    """Watches one worker that has loaded. No clock of its own: the time comes in."""

    def __init__(self, line: MessageSender, liveness: Liveness, limit_s: float) -> None:
        """Call it hung when it makes no progress for longer than `limit_s` with something to do."""
        self._line = line
        self._liveness = liveness
        self._limit_s = limit_s
        self._stall = Stall()
        self._pinged_s = float("-inf")

    def trouble(self, now_s: float) -> str | None:
        """Return what is wrong with it at `now_s`, if anything; to be called repeatedly."""
        beat, taken, sent = self._liveness.beat, self._liveness.taken, self._line.sent
        if self._stall.observe(beat, taken, sent, now_s) > self._limit_s:
            what = "a step ran" if beat % 2 else "it took no message"
            return f"{what} for more than {self._limit_s:g} s"
        quiet_s = min(self._limit_s / 4, _LONGEST_QUIET_S)
        if taken >= sent and now_s - self._pinged_s >= quiet_s:
            self._pinged_s = now_s
            self._line.send(Ping())
        return None
