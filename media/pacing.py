"""Pacing of bursts: packets are spread out, so that a receiver's buffer can stay small.

The frames of a chunk arrive at once and are sent one frame duration apart. A chunk waits only until
the one before it is sent, and follows after half a frame duration, so that a late chunk is caught
up with soon and no chunk is delayed in advance. The receiver plays by RTP times.
"""


class PacketPacer:
    """Tells when to send the packets of one stream. Pure: time is an argument."""

    def __init__(self) -> None:
        self._next_us = 0  # the previous packet lasts until then
        self._chunk = -1

    def due_us(self, chunk: int, duration_us: int, now_us: int) -> int:
        """Return when to send a packet of a chunk that lasts for `duration_us`."""
        due_us = self._next_us if chunk == self._chunk else self._next_us - duration_us // 2
        due_us = max(now_us, due_us)
        self._chunk, self._next_us = chunk, due_us + duration_us
        return due_us

    def restart(self) -> None:
        """Send the next packet at once, because earlier ones were cut."""
        self._next_us, self._chunk = 0, -1
