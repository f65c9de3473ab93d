"""Finding out that the end of what was sent was lost.

A receiver asks again for a packet that it sees others come after. After the last frame of a chunk
none comes, for the world waits until that frame was seen: were it lost, both would wait for ever.
So when nothing is said of it for a while, the newest picture is shown once more; and again, less
and less often, for the page may as well be hidden, and see nothing.
"""

from reverie.gpu_pool.wire.backoff import Backoff

FIRST_S = 0.5
LONGEST_S = 8.0


class TailLossProbe:
    """Says when to show the newest picture once more. Time comes in as an argument."""

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
        """Note what the receiver says that it has seen."""
        self._seen = chunk

    def due(self, now_s: float) -> bool:
        """Tell whether the newest picture is to be shown once more now."""
        if self._sent <= self._seen or now_s < self._due_s:
            return False
        self._due_s = now_s + self._backoff.take()
        return True
