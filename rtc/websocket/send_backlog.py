"""How late what was written to a socket will arrive, in time and not in bytes.

A byte count says nothing of a line: 64 KiB are half a millisecond on one and a second on another.
What waits, divided by what the line drains, is how much later the next picture arrives than on a
free line. Once that exceeds `HOLD_US`, no further picture is encoded for this client.
"""

from collections import deque

from reverie.rtc.websocket.socket_reading import SocketReading

HOLD_US = 60_000
"""No picture follows while what was written arrives so much later than on a free line."""

RELEASE_US = 25_000
"""Pictures follow again before the line runs dry: to encode and to write one takes a moment."""

FULL_US = 50_000
"""Bytes that are under way for so much longer than the least round trip wait in a queue.

A receiver may delay its acknowledgement of a single packet by 40 ms.
"""

FRESH_US = 2_000_000
"""So long after a queue was last seen, the line may have become faster without a sign of it."""

_SMOOTHING = 0.3
_LEAST_FULL_US = 100_000


class SendBacklog:
    """The backlog of one socket. Pure: readings and time are arguments.

    Attributes:
        late_us: how much later than on a free line the last byte arrives.
        held: whether no further picture should be written now.
        bytes_per_s: what the line drained while a queue waited for it; None: not known.
    """

    def __init__(self) -> None:
        self.late_us = 0
        self.held = False
        self.bytes_per_s: float | None = None
        self._noted_us = 0
        self._acked = 0
        self._written: deque[tuple[int, int]] = deque()  # not acknowledged: up to where, and when
        self._was_full = False
        self._seen_full_us = 0
        self._empty_us = 0  # when all will have arrived, at the measured rate
        self._full_us = self._full_bytes = 0  # not yet in `bytes_per_s`

    def note(self, reading: SocketReading, written_bytes: int, now_us: int) -> None:
        """Take a reading.

        Args:
            reading: what waits now.
            written_bytes: all bytes that were written so far, where the kernel does not know it.
            now_us: the time.
        """
        acked = reading.acked_bytes
        if acked is None:
            acked = written_bytes - reading.outstanding_bytes
        self._note_written(acked + reading.outstanding_bytes, acked, now_us)
        oldest_us = now_us - self._written[0][1] if self._written else 0
        waits_us = oldest_us - reading.least_round_trip_us
        full = waits_us > FULL_US
        if full and self._was_full:
            self._measure(acked - self._acked, now_us - self._noted_us)
        self._acked, self._noted_us, self._was_full = acked, now_us, full
        if full:
            self._seen_full_us = now_us
        if not self._written and now_us < self._empty_us - FULL_US:
            self.bytes_per_s = None  # the line drains faster than that
        self.late_us = self._late_us(reading, waits_us, now_us)
        self._empty_us = now_us + self.late_us + reading.least_round_trip_us
        self.held = self.late_us > (RELEASE_US if self.held else HOLD_US)

    def _note_written(self, written: int, acked: int, now_us: int) -> None:
        while self._written and self._written[0][0] <= acked:
            self._written.popleft()
        before = self._written[-1][0] if self._written else acked
        if written > before:
            self._written.append((written, now_us))

    def _measure(self, acked_bytes: int, took_us: int) -> None:
        self._full_us += took_us
        self._full_bytes += acked_bytes
        if self._full_us < _LEAST_FULL_US:
            return
        rate = self._full_bytes * 1e6 / self._full_us
        before = rate if self.bytes_per_s is None else self.bytes_per_s
        self.bytes_per_s = before + _SMOOTHING * (rate - before)
        self._full_us = self._full_bytes = 0

    def _late_us(self, reading: SocketReading, waits_us: int, now_us: int) -> int:
        rate = self.bytes_per_s
        if rate is None or now_us - self._seen_full_us > FRESH_US:
            if waits_us <= FULL_US and not reading.unsent_bytes:
                return 0
            rate = reading.bytes_per_s
        if not rate:
            return max(0, waits_us)
        queued_us = round(reading.outstanding_bytes * 1e6 / rate) - reading.least_round_trip_us
        return max(0, queued_us)
