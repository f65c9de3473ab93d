"""The waiting line for one model: bounded, and fair to those who ask for little.

Sessions of one account (an owner, an address) are served in the order in which they came. Between
accounts the one that holds less goes first (`shares.py`), so that a newcomer stands behind nobody's
second wish.
"""

from collections import Counter
from collections.abc import Callable
from copy import copy

from reverie.gpu_pool.server.session_entry import SessionEntry
from reverie.gpu_pool.wire.errors import PoolError, PoolFullError
from reverie.gpu_pool.wire.shares import Accounts, in_turn


class WaitQueue:
    """Sessions that wait for a free slot. Each is told its position whenever that changes."""

    def __init__(
        self,
        capacity: int,
        retry_after_s: float,
        held: Callable[[], Counter[str]] = Counter[str],
    ) -> None:
        """Hold nobody yet.

        Args:
            capacity: sessions that may wait.
            retry_after_s: what those beyond it are told.
            held: returns how many slots each account holds.
        """
        self._capacity = capacity
        self.retry_after_s = retry_after_s
        self._held = held
        self._waiting: list[SessionEntry] = []  # in the order in which they came
        self._told: dict[SessionEntry, int] = {}  # the position that each was told last

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, session: str) -> bool:
        return any(entry.session == session for entry in self._waiting)

    @property
    def turns(self) -> list[tuple[int, SessionEntry]]:
        """Those who wait, the next one first, each with its turn: 0 for who holds nothing."""
        return in_turn(self._waiting, _accounts, self._held())

    def expected_position(self, accounts: Accounts, *, beyond: bool = False) -> int:
        """Return the position that `join` would give a session on these accounts, from 1 on.

        Raises:
            PoolFullError: it would be refused.
        """
        everybody = [*map(_accounts, self._waiting), accounts]
        order = in_turn(range(len(everybody)), everybody.__getitem__, self._held())
        position = [index for _, index in order].index(len(self._waiting)) + 1
        if position == len(everybody) > self._capacity and not beyond:
            raise self._full()
        return position

    def join(self, entry: SessionEntry, *, beyond: bool = False) -> None:
        """Take a place in the line.

        Where the line is full, the last of those who ask for more gives its place up.

        Args:
            occupant: who waits from now on.
            beyond: let it in however long the line is, for a slot is being cleared for it.

        Raises:
            PoolFullError: the line is as long as it may be.
        """
        self._waiting.append(entry)
        if len(self._waiting) > self._capacity and not beyond:
            last = self.turns[-1][1]
            self._waiting.remove(last)
            self._told.pop(last, None)
            full = self._full()
            if last is entry:
                raise full
            last.refuse(full)
            last.leave()
        self.tell()

    def put_first(self, entry: SessionEntry) -> None:
        """Take back one that `next` returned, whatever the line's length."""
        self._waiting.insert(0, entry)
        self.tell()

    def next(self) -> SessionEntry | None:
        """Take the first one out of the line; None when nobody waits."""
        if not self._waiting:
            return None
        first = self.turns[0][1]
        self._waiting.remove(first)
        self._told.pop(first, None)
        return first

    def leave(self, entry: SessionEntry) -> None:
        """Step out of the line; for one who does not stand in it, nothing happens."""
        if entry in self._waiting:
            self._waiting.remove(entry)
            self._told.pop(entry, None)
            self.tell()

    def dissolve(self, error: PoolError) -> None:
        """Send everybody away."""
        while self._waiting:
            entry = self._waiting.pop(0)
            entry.refuse(copy(error))
            entry.leave()
        self._told.clear()

    def _full(self) -> PoolFullError:
        waiting = f"every place is taken and {self._capacity} wait (waiting_line)"
        return PoolFullError(waiting, self.retry_after_s, self._capacity)

    def tell(self) -> None:
        """Tell everybody whose position has changed."""
        for position, (_, entry) in enumerate(self.turns, start=1):
            if self._told.get(entry) != position:
                self._told[entry] = position
                entry.tell_position(position)


def _accounts(entry: SessionEntry) -> Accounts:
    return entry.opening.accounts
