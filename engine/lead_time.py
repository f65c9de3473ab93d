"""How much unseen media a line needs: what its acknowledgements take when nothing waits.

By Little's law, the rate that a viewer gets is the unseen media divided by the time that an
acknowledgement takes. So the rate needs as much unseen media as an acknowledgement takes anyway
(the line, the viewer's decoding and display), and as the worker takes once it may go on. More than
that only waits at the viewer, and makes controls show later. Pure: times are arguments,
microseconds of one monotonic clock.
"""

from collections import deque
from dataclasses import dataclass
from math import ceil

WINDOW_US = 1_000_000
"""How long a delay counts: the lead follows the line within this time."""

COVERED = 0.9
"""The part of these delays that the lead is long enough for."""

MOST_DELAYS = 128

SLACK_US = 8_000
"""What a viewer's screen and timers add to a delay now and then: half of a refresh at 60 Hz."""

OVERHEAD_MOST_US = 150_000
"""The most that decoding and display are believed to take of a viewer who does not tell."""

FADES_US = 20_000_000
"""An overhead that is not confirmed is forgotten over this time."""

WORK_MOST_US = 1_000_000


@dataclass(frozen=True, slots=True)
class LineTiming:
    """The line to the viewer whose playhead counts, as the server measures it.

    Attributes:
        round_trip_us: what a small message takes there and back.
        jitter_us: how far single ones are from that, on average.
    """

    round_trip_us: int
    jitter_us: int = 0

    @property
    def least_us(self) -> int:
        """What hardly any message is faster than."""
        return max(0, self.round_trip_us - 2 * self.jitter_us)

    @property
    def most_us(self) -> int:
        """What hardly any message is slower than."""
        return self.round_trip_us + 2 * self.jitter_us


class LeadTime:
    """Learns from the acknowledgements of one loop how much media has to be under way."""

    def __init__(self) -> None:
        self._delays: deque[tuple[int, int]] = deque(maxlen=MOST_DELAYS)  # when, and how long
        self._overhead_us = 0.0
        self._guessed_us: int | None = None
        self._work_us = 0.0

    @property
    def delay_us(self) -> int | None:
        """What an acknowledgement takes when nothing waits; None where no line is known."""
        if not self._delays:
            return None
        delays = sorted(delay_us for _, delay_us in self._delays)
        return delays[ceil(COVERED * len(delays)) - 1]

    @property
    def work_us(self) -> int:
        """How long it takes from being allowed to go on until a chunk is put out."""
        return round(self._work_us)

    @property
    def needed_us(self) -> int:
        """How much unseen media keeps the rate; 0 where no line is known."""
        delay_us = self.delay_us
        return 0 if delay_us is None else delay_us + self.work_us + SLACK_US

    def acknowledged(
        self,
        took_us: int,
        line: LineTiming,
        now_us: int,
        *,
        waited_us: int | None = None,
        late: bool = False,
    ) -> None:
        """Note an acknowledgement.

        Args:
            took_us: since the media was put out, without the time that it plays itself.
            line: what carried it.
            now_us: the time.
            waited_us: how long the viewer says that it had waited there, ready to be shown; it is
                believed as far as the line allows it.
            late: generation waited for it, and the viewer had nothing left: then nothing waited.
        """
        if waited_us is not None:
            self.learned(max(line.least_us, took_us - waited_us), now_us)
        else:
            overhead_us = self._overhead(took_us - line.round_trip_us, now_us, late=late)
            self.learned(line.most_us + overhead_us, now_us)

    def learned(self, delay_us: int, now_us: int) -> None:
        """Note what an acknowledgement takes by itself."""
        while self._delays and self._delays[0][0] <= now_us - WINDOW_US:
            self._delays.popleft()
        self._delays.append((now_us, delay_us))

    def worked(self, took_us: int) -> None:
        """Note how long it took from being allowed to go on until the chunk was put out."""
        took_us = min(took_us, WORK_MOST_US)
        if took_us >= self._work_us:
            self._work_us = took_us
        else:
            self._work_us += (took_us - self._work_us) / 8

    def forget(self) -> None:
        """Know of no line: the viewer is in this process."""
        self._delays.clear()
        self._guessed_us = None
        self._overhead_us = 0.0

    def _overhead(self, beside_us: int, now_us: int, *, late: bool) -> int:
        """Return what a viewer who does not tell adds to the line.

        An acknowledgement never takes less than that, and more where its picture had waited.
        """
        beside_us = min(max(0, beside_us), OVERHEAD_MOST_US)
        passed_us = 0 if self._guessed_us is None else now_us - self._guessed_us
        self._guessed_us = now_us
        fading_us = self._overhead_us * max(0.0, 1 - passed_us / FADES_US)
        self._overhead_us = max(beside_us, fading_us) if late else min(beside_us, fading_us)
        return round(self._overhead_us)
