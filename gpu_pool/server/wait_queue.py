"""The queue of sessions for one model: bounded, and fair to owners that ask for little.

Sessions of one account (an owner, an address) are served in the order in which they came. Between
accounts the one that holds less goes first (`shares.py`), so that a first session never
waits behind the second one of another account.
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
        """Begin empty.

        Args:
            capacity: sessions that may wait.
            retry_after_s: what sessions beyond it are told.
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
        """The waiting sessions in order, each with its turn: 0 where its account holds no slot."""
        return in_turn(self._waiting, _accounts, self._held())

    def expected_position(self, accounts: Accounts, *, beyond: bool = False) -> int:
        """Return the position that `join` would give a session on these accounts, from 1 on.

        Raises:
            PoolFullError: it would be refused.
        """
        everyone = [*map(_accounts, self._waiting), accounts]
        order = in_turn(range(len(everyone)), everyone.__getitem__, self._held())
        position = [index for _, index in order].index(len(self._waiting)) + 1
        if position == len(everyone) > self._capacity and not beyond:
            raise self._full()
        return position

    def join(self, entry: SessionEntry, *, beyond: bool = False) -> None:
        """Take a position in the queue.

        Where the queue is full, the last session of the account that asks for most is refused.

        Args:
            entry: the session that waits from now on.
            beyond: let it in however long the queue is, because a slot is being cleared for it.

        Raises:
            PoolFullError: the queue is full.
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
        """Take back one that `next` returned, however long the queue is."""
        self._waiting.insert(0, entry)
        self.tell()

    def next(self) -> SessionEntry | None:
        """Take the first one out of the queue; None when it is empty."""
        if not self._waiting:
            return None
        first = self.turns[0][1]
        self._waiting.remove(first)
        self._told.pop(first, None)
        return first

    def leave(self, entry: SessionEntry) -> None:
        """Leave the queue; idempotent."""
        if entry in self._waiting:
            self._waiting.remove(entry)
            self._told.pop(entry, None)
            self.tell()

    def dissolve(self, error: PoolError) -> None:
        """Refuse every session that waits."""
        while self._waiting:
            entry = self._waiting.pop(0)
            entry.refuse(copy(error))
            entry.leave()
        self._told.clear()

    def _full(self) -> PoolFullError:
        waiting = f"every slot is taken and {self._capacity} wait (waiting_line)"
        return PoolFullError(waiting, self.retry_after_s, self._capacity)

    def tell(self) -> None:
        """Tell each session whose position has changed."""
        for position, (_, entry) in enumerate(self.turns, start=1):
            if self._told.get(entry) != position:
                self._told[entry] = position
                entry.tell_position(position)


def _accounts(entry: SessionEntry) -> Accounts:
    return entry.opening.accounts
