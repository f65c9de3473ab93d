"""Signs of life of a worker, readable even while it is stuck or dead.

The worker writes a counter into shared memory: odd while a unit of model work runs, even between
units; beside it the sessions whose unit it is. The server only ever reads. A counter that stays odd
and does not move is a unit that hangs; when the worker is gone, the sessions written there are the
ones under suspicion.
"""

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from reverie.gpu_pool.memory import SharedMemory

_CAPACITY = 500
_BEAT = struct.Struct("=Q")
_SUSPECTS = struct.Struct("=Q")
_SIZE_BYTES = 4096


class Heartbeat:
    """One counter and a short list of numbers in shared memory; one writer, one reader."""

    def __init__(self, memory: SharedMemory) -> None:
        """Map memory that `prepare` has given its size."""
        self._map = memory.map()

    @staticmethod
    def prepare(memory: SharedMemory) -> None:
        """Give fresh memory its size."""
        memory.resize(_SIZE_BYTES)

    @property
    def beat(self) -> int:
        """The counter: odd while a unit runs."""
        return int(_BEAT.unpack_from(self._map, 0)[0])

    @contextmanager
    def unit(self, sessions: Sequence[int]) -> Iterator[None]:
        """Mark that a unit of these sessions runs; called by the step thread.

        An exception that passes through leaves the mark, for it will end the worker: catch inside
        what is to be survived.
        """
        kept = sessions[:_CAPACITY]
        struct.pack_into(f"={1 + len(kept)}Q", self._map, _BEAT.size, len(kept), *kept)
        self._count()
        yield
        self._count()

    def suspects(self) -> frozenset[int]:
        """Return the sessions whose unit runs now, or ran when the worker died; else nobody.

        To be read when the worker stands still, for a running one may be writing.
        """
        if self.beat % 2 == 0:
            return frozenset()
        count = min(int(_SUSPECTS.unpack_from(self._map, _BEAT.size)[0]), _CAPACITY)
        start = _BEAT.size + _SUSPECTS.size
        return frozenset(struct.unpack_from(f"={count}Q", self._map, start))

    def _count(self) -> None:
        _BEAT.pack_into(self._map, 0, self.beat + 1)


class Stall:
    """Measures for how long one unit has been running. Pure: the time comes in.

    Only differences of the observer's own clock count, so the two processes need not agree on time.
    """

    def __init__(self) -> None:
        self._beat = 0
        self._since_s = 0.0

    def observe(self, beat: int, now_s: float) -> float:
        """Return for how many seconds the unit that runs at `now_s` has been seen running."""
        if beat != self._beat:
            self._beat = beat
            self._since_s = now_s
        return now_s - self._since_s if beat % 2 else 0.0
