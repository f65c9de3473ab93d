"""RTP times: media time as the receiver counts it. They only grow, whatever media time does.

A receiver plays by them, and finds out by itself how late things come. So they keep the distances
of media time while it runs on, and those of this process's clock where it does not: after a cut, a
jump, or a stall that is too long to be made up for.
"""

STALL_S = 1.0
"""What comes later than this has a gap before it."""

JUMP_S = 10.0


class RtpTime:
    """Counts for one stream."""

    def __init__(self, rate_hz: int) -> None:
        """Count in units of 1/`rate_hz` s; the first moment is 0."""
        self._rate_hz = rate_hz
        self._last: tuple[int, int] | None = None  # ticks and media time of what came last
        self._sent: tuple[int, int] | None = None  # ticks of what was sent last, and when
        self._anew = False

    def ticks(self, pts_us: int, now_us: int) -> int:
        """Return the RTP time, without wrapping, of what has come for media time `pts_us`."""
        least = -1 if self._sent is None else self._sent[0]
        if self._last is None:
            ticks = 0
        else:
            before, before_us = self._last
            ticks = before + round((pts_us - before_us) * self._rate_hz / 1e6)
            clock = self._by_clock(now_us)
            jumps = not 0 < ticks - before <= JUMP_S * self._rate_hz
            if self._anew or jumps or clock - ticks > STALL_S * self._rate_hz:
                ticks = clock
            least = max(least, before if not self._anew else -1)
        self._anew = False
        ticks = max(ticks, least + 1)
        self._last = ticks, pts_us
        return ticks

    def sent(self, ticks: int, now_us: int) -> None:
        """Note what was sent, and when."""
        self._sent = ticks, now_us

    def restart(self) -> None:
        """Count on from what was sent: what waited behind it was cut."""
        self._anew = True

    def _by_clock(self, now_us: int) -> int:
        if self._sent is None:
            return self._last[0] + 1 if self._last is not None else 0
        ticks, sent_us = self._sent
        return ticks + (now_us - sent_us) * self._rate_hz // 1_000_000
