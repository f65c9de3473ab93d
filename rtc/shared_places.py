"""Places that are shared fairly between accounts: uploads, peers. A holder may lose its place."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from reverie.gpu_pool.wire.shares import Accounts, held_by, who_gives_way


@dataclass(frozen=True, slots=True, eq=False)
class Holder:
    """One holder of a place.

    Attributes:
        accounts: the owner and address that it counts for.
        give_way: called when its place goes to an account that holds fewer.
        drives: holders that only watch lose their places first.
    """

    accounts: Accounts
    give_way: Callable[[], None]
    drives: bool = False


class SharedPlaces:
    """At most `limit` holders. For one event loop."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._holders: list[Holder] = []  # the oldest first

    def __len__(self) -> int:
        return len(self._holders)

    def take(self, holder: Holder) -> bool:
        """Give `holder` a free place, or one of an account that holds two more.

        Returns:
            Whether there was a place.
        """
        if len(self._holders) >= self.limit:
            newest_first = self._holders[::-1]
            in_order = sorted(newest_first, key=lambda each: each.drives)
            held = held_by(each.accounts for each in in_order)
            leaver = who_gives_way(
                [(each, each.accounts) for each in in_order], holder.accounts, held
            )
            if leaver is None:
                return False
            self._holders.remove(leaver)
            leaver.give_way()
        self._holders.append(holder)
        return True

    def give_back(self, holder: Holder) -> None:
        """Free a place. Idempotent; nothing happens once another holder has the place."""
        if holder in self._holders:
            self._holders.remove(holder)

    @contextmanager
    def held(self, holder: Holder) -> Iterator[bool]:
        """Hold a place while the block runs; yield whether there was one."""
        try:
            yield self.take(holder)
        finally:
            self.give_back(holder)
