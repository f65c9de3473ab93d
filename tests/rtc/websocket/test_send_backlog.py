"""What waits is measured in time: the same bytes are late on a slow line, and not on a fast one."""

from collections import deque

import pytest

from reverie.rtc.websocket.send_backlog import HOLD_US, RELEASE_US, SendBacklog
from reverie.rtc.websocket.socket_reading import SocketReading

STEP_US = 5_000
FRAME_BYTES = 6_000
FRAME_US = 40_000


class FakeLine:
    """A line of some bytes a second and some round trip, and a kernel that tells of it."""

    def __init__(self, bytes_per_s: float, trip_us: int, told: bool = True) -> None:
        self.backlog = SendBacklog()
        self.bytes_per_s = bytes_per_s
        self.trip_us = trip_us
        self.told = told
        self.now_us = 0
        self.written = self.acked = 0
        self._due_us = 0
        self._queue = 0.0  # bytes
        self._acks: deque[tuple[float, int]] = deque()
        self.wrote_us: list[int] = []

    def run(self, seconds: float, frame_bytes: int = FRAME_BYTES) -> None:
        """Write a frame at its time unless pictures are held."""
        until_us = self.now_us + seconds * 1e6
        while self.now_us < until_us:
            if self.now_us >= self._due_us and not self.backlog.held:
                self._write(frame_bytes)
                self._due_us = max(self._due_us + FRAME_US, self.now_us)
            self.now_us += STEP_US
            self._queue = max(0.0, self._queue - self.bytes_per_s * STEP_US / 1e6)
            while self._acks and self._acks[0][0] <= self.now_us:
                self.acked = self._acks.popleft()[1]
            self._note()

    def _write(self, size_bytes: int) -> None:
        begin = self.written
        self.written += size_bytes
        self.wrote_us.append(self.now_us)
        for packet in range(1, size_bytes // 1_000 + 1):
            self._queue += 1_000
            arrives_us = self.now_us + self._queue * 1e6 / self.bytes_per_s + self.trip_us
            self._acks.append((arrives_us, begin + 1_000 * packet))
        self._note()

    def _note(self) -> None:
        unsent = min(self.written - self.acked, round(self._queue))
        if self.told:
            reading = SocketReading(
                unsent_bytes=0,
                in_flight_bytes=self.written - self.acked,
                acked_bytes=self.acked,
                round_trip_us=self.trip_us,
                least_round_trip_us=self.trip_us,
            )
        else:
            reading = SocketReading(unsent)
        self.backlog.note(reading, self.written, self.now_us)


@pytest.mark.parametrize("trip_us", [1_000, 200_000])
def test_a_line_that_takes_all_is_never_behind(trip_us: int) -> None:
    line = FakeLine(2_000_000, trip_us)
    line.run(5)
    assert len(line.wrote_us) == 5e6 / FRAME_US
    assert (line.backlog.held, line.backlog.late_us) == (False, 0)


@pytest.mark.parametrize("trip_us", [1_000, 200_000])
@pytest.mark.parametrize("told", [True, False])
def test_on_a_slow_line_little_waits_and_the_line_never_rests(trip_us: int, told: bool) -> None:
    line = FakeLine(60_000, trip_us, told)
    line.run(5)
    line.wrote_us.clear()
    before = line.acked
    waited = []
    for _ in range(400):
        line.run(STEP_US / 1e6)
        waited.append(line._queue / line.bytes_per_s)
    longest_s = (HOLD_US / 1e6) + 1.5 * FRAME_BYTES / line.bytes_per_s
    assert max(waited) < longest_s
    assert line.acked - before > 0.9 * 2 * 60_000
    assert line.backlog.bytes_per_s == pytest.approx(60_000, rel=0.25)


def test_a_line_that_takes_nothing_more_is_behind_until_it_does() -> None:
    line = FakeLine(2_000_000, 20_000)
    line.run(2)
    line.bytes_per_s = 1.0
    line._acks.clear()
    line.run(1)
    assert line.backlog.held
    written = line.written
    line.run(10)
    assert line.written == written
    line.bytes_per_s, line._queue, line.acked = 2_000_000, 0.0, line.written
    line._acks.clear()
    line.run(0.2)
    line.wrote_us.clear()
    line.run(2)
    assert len(line.wrote_us) == 2e6 / FRAME_US
    assert not line.backlog.held


def test_an_acknowledgement_that_the_receiver_delays_is_no_queue() -> None:
    backlog = SendBacklog()
    for number in range(50):
        wrote_us = number * 100_000
        for later_us, acked in ((0, number), (20_000, number), (45_000, number + 1)):
            reading = SocketReading(
                0, 1_000 * (number + 1 - acked), 1_000 * acked, 1_000_000, True, 1_000, 1_000
            )
            backlog.note(reading, 0, wrote_us + later_us)
            assert not backlog.held
    assert backlog.bytes_per_s is None


def test_pictures_are_held_at_one_mark_and_follow_again_at_a_lower_one() -> None:
    assert RELEASE_US < HOLD_US
    backlog = SendBacklog()
    for now_us, waiting, held in (
        (0, 0, False),
        (1, 7_000, True),
        (2, 4_000, True),
        (3, 2_000, False),
    ):
        backlog.note(SocketReading(waiting, bytes_per_s=100_000), 10_000, now_us)
        assert backlog.held is held
