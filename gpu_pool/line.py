"""The waiting line for one model: first come, first served, bounded."""

from collections import deque
from copy import copy

from reverie.gpu_pool.errors import PoolError, PoolFullError
from reverie.gpu_pool.occupant import Occupant


class WaitingLine:
    """Sessions that wait for a free slot. Each is told its position whenever that changes."""

    def __init__(self, capacity: int, retry_after_s: float) -> None:
        self._capacity = capacity
        self.retry_after_s = retry_after_s
        self._waiting: deque[Occupant] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, session: str) -> bool:
        return any(occupant.session == session for occupant in self._waiting)

    def join(self, occupant: Occupant) -> None:
        """Stand at the end.

        Raises:
            PoolFullError: the line is as long as it may be.
        """
        if len(self._waiting) >= self._capacity:
            raise PoolFullError(
                f"every place is taken and {len(self._waiting)} wait",
                self.retry_after_s,
                self._capacity,
            )
        self._waiting.append(occupant)
        occupant.tell_position(len(self._waiting))

    def put_first(self, occupant: Occupant) -> None:
        """Take back one that `next` returned, whatever the line's length."""
        self._waiting.appendleft(occupant)
        self._tell_from(0)

    def next(self) -> Occupant | None:
        """Take the first one out of the line; None when nobody waits."""
        if not self._waiting:
            return None
        first = self._waiting.popleft()
        self._tell_from(0)
        return first

    def leave(self, occupant: Occupant) -> None:
        """Step out of the line; for one who does not stand in it, nothing happens."""
        if occupant in self._waiting:
            index = self._waiting.index(occupant)
            del self._waiting[index]
            self._tell_from(index)

    def dissolve(self, error: PoolError) -> None:
        """Send everybody away."""
        while self._waiting:
            occupant = self._waiting.popleft()
            occupant.refuse(copy(error))
            occupant.leave()

    def _tell_from(self, index: int) -> None:
        for position, occupant in enumerate(list(self._waiting)[index:], start=index + 1):
            occupant.tell_position(position)
