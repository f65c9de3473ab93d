"""How long a client's controls take to show: from sending one until its first frame comes out.

The receipt `control.applied` names the media time of that frame and comes before it. Pure: times
are arguments, microseconds of the client's monotonic clock.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass

from reverie.sessions.protocol.events import (
    AnyEvent,
    ControlApplied,
    ControlSuperseded,
    SessionInterrupted,
)

KEPT = 100
"""How many controls the figures are of."""

MOST_PENDING = 256
"""Controls whose frame has not come: beyond these the oldest are no longer measured."""


@dataclass(frozen=True, slots=True)
class ControlLatency:
    """From sending a control until its first frame came out of `stream`, in milliseconds.

    Attributes:
        count: how many controls it is of: the newest, at most `KEPT`.
        newest_ms: of the newest of them.
        p50_ms: half of them took at most this long.
        p95_ms: 19 of 20 took at most this long.
    """

    count: int
    newest_ms: float
    p50_ms: float
    p95_ms: float


class LatencyMeter:
    """Measures the controls of one client."""

    def __init__(self) -> None:
        self._sent_us: OrderedDict[str, int] = OrderedDict()  # by control, in their order
        self._due: dict[str, int] = {}  # the media time of the first frame, once it is told
        self._took_us: deque[int] = deque(maxlen=KEPT)

    @property
    def latency(self) -> ControlLatency | None:
        """The figures; None before the first control has shown."""
        if not self._took_us:
            return None
        ordered = sorted(self._took_us)
        last = len(ordered) - 1
        return ControlLatency(
            count=len(ordered),
            newest_ms=self._took_us[-1] / 1000,
            p50_ms=ordered[last // 2] / 1000,
            p95_ms=ordered[-(-last * 19 // 20)] / 1000,
        )

    def sent(self, control: str, now_us: int) -> None:
        """Note that a control is being sent."""
        self._sent_us[control] = now_us
        while len(self._sent_us) > MOST_PENDING:
            self._forget(next(iter(self._sent_us)))

    def refused(self, control: str) -> None:
        """Note that a control will never act."""
        self._forget(control)

    def note(self, event: AnyEvent) -> None:
        """Take a receipt, or a cut, as it comes out of the stream."""
        match event:
            case ControlApplied(control=control, pts_us=pts_us) if control in self._sent_us:
                self._due[control] = pts_us
            case ControlSuperseded(control=control):
                self._forget(control)
            case SessionInterrupted(next_us=next_us):
                for control in [each for each, due_us in self._due.items() if due_us >= next_us]:
                    del self._due[control]  # its frame was taken back; another receipt may come

    def shown(self, until_us: int, now_us: int) -> None:
        """Note that the media up to a media time has come out of the stream."""
        for control in [each for each, due_us in self._due.items() if due_us < until_us]:
            self._took_us.append(now_us - self._sent_us[control])
            self._forget(control)

    def _forget(self, control: str) -> None:
        self._sent_us.pop(control, None)
        self._due.pop(control, None)
