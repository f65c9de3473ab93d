"""Which pictures are described to a peer whose `events` channel is behind.

The channel is reliable and in order, so on a line that loses packets its messages wait for those
before them. A picture travels by another way and must not wait for its description: while the
channel is behind, descriptions are left out, and the next one counts them as dropped.
"""

from collections import Counter

from reverie.sessions.protocol.media_events import MediaChunk

RARELY_US = 150_000
"""Between two descriptions while the line loses much."""


class UntoldChunks:
    """Counts what was left out of each stream."""

    def __init__(self) -> None:
        self._waiting: Counter[str] = Counter()  # since the last one that was told
        self._in_all: Counter[str] = Counter()
        self._told_us: dict[str, int] = {}

    def passed(
        self, chunk: MediaChunk, now_us: int, *, behind: bool, lossy: bool = False
    ) -> MediaChunk | None:
        """Return the description to tell; None when it is left out.

        Args:
            chunk: what is sent.
            now_us: the time.
            behind: whether the channel is.
            lossy: whether the line loses much. The end of a chunk is told where it can be, because
                the receiver reports it.
        """
        told_us = self._told_us.get(chunk.stream)
        soon = told_us is not None and now_us - told_us < RARELY_US
        if behind or (lossy and (soon or not chunk.last)):
            self._waiting[chunk.stream] += 1 + chunk.dropped
            self._in_all[chunk.stream] += 1
            return None
        self._told_us[chunk.stream] = now_us
        untold, self._waiting[chunk.stream] = self._waiting[chunk.stream], 0
        index = chunk.index - self._in_all[chunk.stream]
        return chunk.model_copy(update={"index": index, "dropped": chunk.dropped + untold})
