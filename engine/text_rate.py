"""How fast a loop of text speaks: no viewer's playhead holds it, only a number of its own."""

SLACK_US = 250_000
"""A word may come so much later than it could: frames are more urgent."""


class TextRate:
    """Times the units of a loop without a media stream. Times are the caller's monotonic clock."""

    def __init__(self) -> None:
        """Let the first word come at once."""
        self._due_us = 0
        self._ready_us: int | None = None

    @property
    def due_us(self) -> int:
        """Nothing may run before this time."""
        return self._due_us

    def spoke(self, now_us: int, per_second: float) -> None:
        """Note that text was put out; 0 a second sets no limit."""
        if per_second > 0:
            # A loop that had to wait catches up by one word, and not by all it could have said.
            interval_us = round(1e6 / per_second)
            self._due_us = max(self._due_us + interval_us, now_us)

    def ran(self) -> None:
        """Note that a unit has run: the next one has its own deadline."""
        self._ready_us = None

    def deadline_us(self, now_us: int) -> int:
        """Return by when the unit that is ready since the first time of asking should run."""
        if self._ready_us is None:
            self._ready_us = max(now_us, self._due_us)
        return self._ready_us + SLACK_US
