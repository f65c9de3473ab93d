"""RTP times, in the receiver's units. They only increase, whatever media time does.

A receiver schedules playout by them, and takes what a packet comes later than its RTP time says for
a fault of the network, against which it delays all pictures. So a picture's RTP time is when it is
sent (`DueTime`): a model that is slower than declared, stalls or changes its rate costs no delay.
Sound must not be stretched. Its RTP times (`RtpTime`) keep the intervals of media time while it is
continuous, and those of this process's clock where it is not: after a cut, a jump, or a stall that
is too long to catch up with.
"""

STALL_S = 1.0
"""A packet that is later than this has a gap before it."""

JUMP_S = 10.0


class RtpTime:
    """The RTP time of one stream."""

    def __init__(self, rate_hz: int) -> None:
        """Count in units of 1/`rate_hz` s; the first moment is 0."""
        self._rate_hz = rate_hz
        self._last: tuple[int, int] | None = None  # ticks and media time of the last packet
        self._sent: tuple[int, int] | None = None  # ticks and time of the last packet sent
        self._restarted = False

    def ticks(self, pts_us: int, now_us: int) -> int:
        """Return the RTP time, without wrapping, of a packet with the media time `pts_us`."""
        least = -1 if self._sent is None else self._sent[0]
        if self._last is None:
            ticks = 0
        else:
            before, before_us = self._last
            ticks = before + round((pts_us - before_us) * self._rate_hz / 1e6)
            clock = self._by_clock(now_us)
            jumps = not 0 < ticks - before <= JUMP_S * self._rate_hz
            if self._restarted or jumps or clock - ticks > STALL_S * self._rate_hz:
                ticks = clock
            least = max(least, before if not self._restarted else -1)
        self._restarted = False
        ticks = max(ticks, least + 1)
        self._last = ticks, pts_us
        return ticks

    def sent(self, ticks: int, now_us: int) -> None:
        """Note when a packet was sent."""
        self._sent = ticks, now_us

    def restart(self) -> None:
        """Continue from the last packet that was sent: those that waited after it were cut."""
        self._restarted = True

    def _by_clock(self, now_us: int) -> int:
        if self._sent is None:
            return self._last[0] + 1 if self._last is not None else 0
        ticks, sent_us = self._sent
        return ticks + (now_us - sent_us) * self._rate_hz // 1_000_000


class DueTime:
    """The RTP time of a stream of pictures: when each is due to be sent."""

    def __init__(self, rate_hz: int) -> None:
        """Count in units of 1/`rate_hz` s; the first moment is 0."""
        self._rate_hz = rate_hz
        self._origin_us: int | None = None
        self._last = self._sent = -1  # ticks

    def ticks(self, due_us: int) -> int:
        """Return the RTP time, without wrapping, of a packet that is due at `due_us`."""
        if self._origin_us is None:
            self._origin_us = due_us
        ticks = (due_us - self._origin_us) * self._rate_hz // 1_000_000
        self._last = max(ticks, self._last + 1)
        return self._last

    def sent(self, ticks: int) -> None:
        """Note that a packet was sent."""
        self._sent = ticks

    def restart(self) -> None:
        """Continue from the last packet that was sent: those that waited after it were cut."""
        self._last = self._sent
