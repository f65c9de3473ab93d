"""When what comes in bursts is sent: one by one, so that a receiver's buffer can stay small.

The frames of a chunk come at once and are sent a frame's time apart. A chunk waits only until the
one before it is out, and then follows at half a frame's time: what came late is made up for soon,
and nobody is kept waiting for what might come late. How fast it is played is the receiver's affair,
by RTP times.
"""


class PacketPacer:
    """Says when to send, for one stream. Pure: time comes in as an argument."""

    def __init__(self) -> None:
        self._next_us = 0  # before this, the one before it has not been shown for long enough
        self._chunk = -1

    def due_us(self, chunk: int, duration_us: int, now_us: int) -> int:
        """Return when to send what has come now, of a chunk, and that lasts for `duration_us`."""
        due_us = self._next_us if chunk == self._chunk else self._next_us - duration_us // 2
        due_us = max(now_us, due_us)
        self._chunk, self._next_us = chunk, due_us + duration_us
        return due_us

    def restart(self) -> None:
        """Send what comes next at once: what came before it was cut."""
        self._next_us, self._chunk = 0, -1
