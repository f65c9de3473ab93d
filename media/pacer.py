"""When what was generated in bursts is played: evenly, on one monotonic clock. Pure.

All streams of one listener share a pacer, so that sound and pictures stay together. What is ahead
of its time waits for it. What comes a little late is played at once, and the clock stands: the rest
of the burst makes up for it. What comes later than that shows that generation has stalled: the
clock begins anew there, and what follows keeps its distance instead of hurrying after it.
"""


class Pacer:
    """Maps media time to the time of a monotonic clock."""

    def __init__(self, late_us: int = 150_000, ahead_us: int = 3_000_000) -> None:
        """Begin with the first thing that is asked for.

        Args:
            late_us: more than this behind its time, the clock begins anew.
            ahead_us: likewise ahead of its time: media time has jumped.
        """
        self._late_us = late_us
        self._ahead_us = ahead_us
        self._offset_us: int | None = None  # from media time to now
        self.stalls = 0  # how often the clock began anew because something came too late

    def due_us(self, pts_us: int, now_us: int) -> int:
        """Return when to play what belongs at `pts_us`; it may be past by up to `late_us`.

        Args:
            now_us: of the monotonic clock; it is asked when there is something, not when it is due.
        """
        if self._offset_us is not None:
            due_us = pts_us + self._offset_us
            if now_us - self._late_us <= due_us <= now_us + self._ahead_us:
                return due_us
            self.stalls += due_us < now_us
        self._offset_us = now_us - pts_us
        return now_us

    def begin_anew(self) -> None:
        """Play what comes next at once: what came before it was cut."""
        self._offset_us = None
