"""Playheads that a line loses, and with them the pace of the session.

Generation waits for playheads. They travel on a reliable channel in order, which on a line that
loses many packets delivers them late and in bursts. So while the receiver reports such losses, a
picture that was sent counts as seen when a playhead could have come, as long as playheads do come
now and then: a page that is hidden sends none, and nothing is made for it.
"""

LOSSY = 0.05
"""Above this share of lost packets playheads may be late."""

ALIVE_US = 3_000_000
"""Without any playhead for so long nothing is assumed."""

MARGIN_US = 100_000
"""Beside the round trip: for the receiver's buffer and the page."""

_SMOOTHING = 0.1
"""A report covers a few packets only: one or two of them lost are a third of it."""


class LostPlayheads:
    """Tells which chunks count as seen although no playhead says so. Pure: time is an argument."""

    def __init__(self) -> None:
        self.lost = 0.0  # share of packets, smoothed
        self._seen = -1
        self._heard_us: int | None = None

    @property
    def lossy(self) -> bool:
        """Whether playheads may be late."""
        return self.lost >= LOSSY

    def reported(self, fraction_lost: float) -> None:
        """Note a report of the receiver."""
        self.lost += _SMOOTHING * (fraction_lost - self.lost)

    def heard(self, chunk: int, now_us: int) -> None:
        """Note a playhead."""
        self._seen, self._heard_us = max(self._seen, chunk), now_us

    def wait_us(self, trip_us: int) -> int:
        """Return after what time a chunk that is sent now could have been seen."""
        return trip_us + MARGIN_US

    def counts(self, chunk: int, now_us: int) -> bool:
        """Tell whether a chunk that was sent so long ago counts as seen."""
        if not self.lossy or chunk <= self._seen or self._heard_us is None:
            return False
        return now_us - self._heard_us < ALIVE_US
