"""A number of places that are shared by account: uploads, peers. Holders may be asked to leave."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from reverie.gpu_pool.wire.shares import Accounts, held_by, who_gives_way


@dataclass(frozen=True, slots=True, eq=False)
class Holder:
    """Who holds a place.

    Attributes:
        accounts: whom it is counted under.
        give_way: called when it has lost its place to somebody who holds fewer.
        drives: others give way before it does.
    """

    accounts: Accounts
    give_way: Callable[[], None]
    drives: bool = False


class SharedPlaces:
    """At most `limit` holders. For one event loop."""

    def __init__(self, limit: int) -> None:
        """Begin with all places free."""
        self.limit = limit
        self._holders: list[Holder] = []  # the oldest first

    def __len__(self) -> int:
        return len(self._holders)

    def take(self, holder: Holder) -> bool:
        """Give a place to `holder`, a free one or that of somebody who holds two more.

        Returns:
            Whether there was one.
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
        """Free a place. Twice is once, and after it was given to another it is nothing."""
        if holder in self._holders:
            self._holders.remove(holder)

    @contextmanager
    def held(self, holder: Holder) -> Iterator[bool]:
        """Hold a place for a block; yield whether there was one."""
        try:
            yield self.take(holder)
        finally:
            self.give_back(holder)
