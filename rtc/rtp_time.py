"""RTP times of moments: they only grow, also where media time goes back after a cut."""


class RtpTime:
    """Counts for one stream; the first moment is 0."""

    def __init__(self, rate_hz: int) -> None:
        """Count in units of 1/`rate_hz` s."""
        self._rate_hz = rate_hz
        self._zero_us: int | None = None
        self._last = -1

    def ticks(self, due_us: int) -> int:
        """Return the RTP time, without wrapping, of something that is sent at `due_us`."""
        if self._zero_us is None:
            self._zero_us = due_us
        exact = (due_us - self._zero_us) * self._rate_hz // 1_000_000
        self._last = max(exact, self._last + 1)
        return self._last
