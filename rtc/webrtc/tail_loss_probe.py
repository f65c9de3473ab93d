"""Detects that the last packets that were sent are lost.

A receiver asks again for a missing packet when later ones arrive. None arrive after the last frame
of a chunk, because generation waits until that frame was seen: if it were lost, both sides would
wait for ever. So when no playhead confirms it for a while, the newest picture is sent again, at
growing intervals, because the page may also be hidden and see nothing.
"""

from reverie.gpu_pool.wire.backoff import Backoff

FIRST_S = 0.5
LONGEST_S = 8.0


class TailLossProbe:
    """Tells when to send the newest picture again. Time is an argument."""

    def __init__(self) -> None:
        self._sent = self._seen = -1  # chunks
        self._due_s = 0.0
        self._backoff = Backoff(FIRST_S, LONGEST_S)

    def sent(self, chunk: int, now_s: float) -> None:
        """Note that the last frame of a chunk was sent."""
        if chunk != self._sent:
            self._sent = chunk
            self._backoff.restart()
            self._due_s = now_s + self._backoff.take()

    def seen(self, chunk: int) -> None:
        """Note the chunk that the receiver has seen."""
        self._seen = chunk

    def due(self, now_s: float) -> bool:
        """Tell whether to send the newest picture again now."""
        if self._sent <= self._seen or now_s < self._due_s:
            return False
        self._due_s = now_s + self._backoff.take()
        return True
