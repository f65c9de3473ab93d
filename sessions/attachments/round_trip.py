"""The round trip to one client, as the server measures it. Pure: times are arguments."""

from collections import deque
from statistics import median

from reverie.engine.lead_time import LineTiming

WINDOW_US = 1_500_000
"""How long a sample counts, so that a line that changes is known within a second or so."""

SAMPLES = 32
ENOUGH = 3
"""Samples of which one, at least, has not waited behind anything."""


class RoundTrip:
    """The samples of the last moments; the newest one stays for as long as no other comes.

    Attributes:
        expected: the client is on a line, of which samples will come; else it is in this process.
    """

    def __init__(self) -> None:
        """Know nothing."""
        self.expected = False
        self._samples: deque[tuple[int, int]] = deque(maxlen=SAMPLES)  # when, and how long

    def note(self, took_us: int, now_us: int) -> None:
        """Add a sample: a message and its answer took so long."""
        while self._samples and self._samples[0][0] <= now_us - WINDOW_US:
            self._samples.popleft()
        self._samples.append((now_us, max(0, took_us)))

    @property
    def least_us(self) -> int:
        """The least of the last moments, as with empty queues; 0 while samples are too few."""
        if len(self._samples) < ENOUGH:
            return 0
        return min(took_us for _, took_us in self._samples)

    @property
    def line(self) -> LineTiming | None:
        """The line as it is now; None where there is none."""
        if not self._samples:
            return LineTiming(0) if self.expected else None
        times = [took_us for _, took_us in self._samples]
        usual_us = round(median(times))
        jitter_us = round(sum(abs(took_us - usual_us) for took_us in times) / len(times))
        return LineTiming(usual_us, jitter_us)
