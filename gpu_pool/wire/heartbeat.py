"""Signs of life of a worker, readable even while it is stuck or dead.

The worker writes two counters into shared memory: its beat, odd while a unit of model work runs and
even between units, and how many messages it has taken; next to them the sessions whose unit it is.
The server only reads. Counters that do not change while a unit runs, or while messages wait, are a
worker that hangs; when it is gone, the sessions written there are the ones under suspicion.
"""

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from reverie.gpu_pool.wire.shared_memory import SharedMemory

_CAPACITY = 500
_NUMBER = struct.Struct("=Q")
_BEAT_AT = 0
_TAKEN_AT = 8
_SUSPECTS_AT = 16
_SIZE_BYTES = 4096


class Heartbeat:
    """Two counters and a short list of numbers in shared memory; one writer, one reader."""

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
        return self._read(_BEAT_AT)

    @property
    def taken(self) -> int:
        """Messages that the step thread has taken and carried out since its start."""
        return self._read(_TAKEN_AT)

    def take(self, messages: int) -> None:
        """Count messages that are carried out; called by the step thread."""
        _NUMBER.pack_into(self._map, _TAKEN_AT, self.taken + messages)

    @contextmanager
    def unit(self, sessions: Sequence[int]) -> Iterator[None]:
        """Mark that a unit of these sessions runs; called by the step thread.

        An exception that passes through leaves the mark, because it will end the worker: catch
        inside what is to be survived.
        """
        kept = sessions[:_CAPACITY]
        struct.pack_into(f"={1 + len(kept)}Q", self._map, _SUSPECTS_AT, len(kept), *kept)
        self._count()
        yield
        self._count()

    def suspects(self) -> frozenset[int]:
        """Return the sessions whose unit runs now, or ran when the worker died; else none.

        To be read when the worker has stopped, because a running one may be writing.
        """
        if self.beat % 2 == 0:
            return frozenset()
        count = min(self._read(_SUSPECTS_AT), _CAPACITY)
        start = _SUSPECTS_AT + _NUMBER.size
        return frozenset(struct.unpack_from(f"={count}Q", self._map, start))

    def _count(self) -> None:
        _NUMBER.pack_into(self._map, _BEAT_AT, self.beat + 1)

    def _read(self, place: int) -> int:
        return int(_NUMBER.unpack_from(self._map, place)[0])


class Stall:
    """Measures how long a worker with something to do made no progress. Pure: the time comes in.

    Only differences of the observer's own clock count, so the two processes need not agree on time.
    """

    def __init__(self) -> None:
        self._liveness = (0, 0)
        self._since_s = 0.0

    def observe(self, beat: int, taken: int, sent: int, now_s: float) -> float:
        """Return for how many seconds until `now_s` its counters have not changed.

        A worker that runs no unit and has taken all that was sent rests, for however long.
        """
        rests = beat % 2 == 0 and taken >= sent
        if rests or (beat, taken) != self._liveness:
            self._liveness = (beat, taken)
            self._since_s = now_s
        return now_s - self._since_s
