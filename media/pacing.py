"""Pacing of bursts: packets are spread out, so that a receiver's buffer can stay small.

The frames of a chunk arrive at once and are sent one frame duration apart. A chunk waits only until
the one before it is sent, and follows after half a frame duration, so that a late chunk is caught
up with soon and no chunk is delayed in advance. Where chunks of several frames come slower than
they last, their frames are spread over the time that passes between chunks: a model that is slower
than it declared is slow evenly, and does not stop after each chunk.
"""

MOST_STRETCH = 2.0
"""Frames are sent at most so much further apart than they last."""

STALL = 3.0
"""A chunk that takes so many times as long as it lasts tells of a stall, and not of a rate."""

CLOSER = 0.95
"""Frames are spread over this part of the time that a chunk took."""

_SMOOTHING = 0.3


class PacketPacer:
    """Tells when to send the packets of one stream. Pure: time is an argument."""

    def __init__(self) -> None:
        self._next_us = 0  # the previous packet lasts until then
        self._chunk = -1
        self._stretch = 1.0  # by how much chunks take longer than they last
        self._came_us: int | None = None  # when the newest chunk came
        self._media_us = 0  # how long its packets last so far

    def due_us(self, chunk: int, duration_us: int, now_us: int) -> int:
        """Return when to send a packet of a chunk that lasts for `duration_us`."""
        if chunk != self._chunk:
            self._note_chunk(duration_us, now_us)
        stretched_us = round(duration_us * self._stretch)
        due_us = self._next_us if chunk == self._chunk else self._next_us - duration_us // 2
        due_us = max(now_us, due_us)
        self._chunk, self._next_us = chunk, due_us + stretched_us
        self._media_us += duration_us
        return due_us

    def restart(self) -> None:
        """Send the next packet at once, because earlier ones were cut."""
        self._next_us, self._chunk = 0, -1
        self._came_us = None

    def _note_chunk(self, duration_us: int, now_us: int) -> None:
        if self._came_us is not None and self._media_us:
            took = (now_us - self._came_us) / self._media_us
            if took < STALL:
                # A chunk that had to wait shows that the model can do more. Where the model waits
                # for the viewer, what is spread here slows it: hence a little less than it took.
                waited = now_us < self._next_us - duration_us // 2
                wanted = 1.0 if waited else min(max(1.0, took * CLOSER), MOST_STRETCH)
                self._stretch += _SMOOTHING * (wanted - self._stretch)
        self._came_us, self._media_us = now_us, 0
