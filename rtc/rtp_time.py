"""RTP times of moments: they only grow, also where media time goes back after a cut."""

STALL_TICKS = 4800
"""Sound that comes later than this has a gap before it."""

LONGEST_TICKS = 48_000


class RtpTime:
    """Counts for one stream of pictures; the first moment is 0."""

    def __init__(self, rate_hz: int) -> None:
        """Count in units of 1/`rate_hz` s."""
        self._rate_hz = rate_hz
        self._zero_us: int | None = None
        self._last = -1

    def ticks(self, due_us: int) -> int:
        """Return the RTP time, without wrapping, of something that is sent at `due_us`."""
        self._last = max(self.exact(due_us), self._last + 1)
        return self._last

    def exact(self, due_us: int) -> int:
        """Return what the clock says; it may be no later than what was given before."""
        if self._zero_us is None:
            self._zero_us = due_us
        return (due_us - self._zero_us) * self._rate_hz // 1_000_000


class SoundTime:
    """Counts samples: what follows in media time follows in RTP time, whenever it is sent."""

    def __init__(self, rate_hz: int) -> None:
        """Count samples at `rate_hz`."""
        self._rate_hz = rate_hz
        self._clock = RtpTime(rate_hz)
        self._last_us: int | None = None  # media time
        self._last = -1

    def ticks(self, pts_us: int, due_us: int) -> int:
        """Return the RTP time, without wrapping, of sound of media time `pts_us`."""
        exact = self._clock.exact(due_us)
        follows = exact
        if self._last_us is not None:
            step = round((pts_us - self._last_us) * self._rate_hz / 1_000_000)
            if 0 < step <= LONGEST_TICKS and exact - (self._last + step) <= STALL_TICKS:
                follows = self._last + step
        self._last_us, self._last = pts_us, max(follows, self._last + 1)
        return self._last
