"""Which sessions of a model end for others, when their owner or address holds too many slots."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from reverie.gpu_pool.server.session_entry import EntryState, SessionEntry
from reverie.gpu_pool.wire.shares import Accounts, held_by, who_gives_way


class SlotShares:
    """What each account holds of a model's slots."""

    def __init__(
        self, entries: Mapping[str, SessionEntry], give_way: Literal["all", "unwatched", "none"]
    ) -> None:
        """Watch the sessions that have a slot.

        Args:
            entries: those sessions, as they are at any time.
            give_way: which of them end for others (`PoolOptions.give_way`).
        """
        self._entries = entries
        self._give_way = give_way

    @property
    def coming(self) -> int:
        """Slots that will be free as soon as the worker says so."""
        return sum(each.state is EntryState.CLOSING for each in self._entries.values())

    def held(self) -> Counter[str]:
        """Return how many slots each account holds, without those that it is giving back."""
        return held_by(each.opening.accounts for each in self._staying())

    def leaver(self, newcomer: Accounts, held: Counter[str] | None = None) -> SessionEntry | None:
        """Return the session that ends for a newcomer; those without a viewer go first.

        Args:
            newcomer: the accounts of the session that comes.
            held: what each account will hold; None: what it holds now.
        """
        if self._give_way == "none":
            return None
        newest_first = list(reversed(self._staying()))
        leaving = [each for each in newest_first if not each.recovery_log.watched]
        if self._give_way == "all":
            leaving += [each for each in newest_first if each.recovery_log.watched]
        holders = [(each, each.opening.accounts) for each in leaving]
        return who_gives_way(holders, newcomer, self.held() if held is None else held)

    def clear(
        self,
        free: int,
        turns: Iterable[tuple[int, SessionEntry]],
        send_away: Callable[[SessionEntry], None],
    ) -> None:
        """Take slots from accounts that hold far more than others, for as many sessions as wait.

        Args:
            free: slots that no session has.
            turns: the sessions that wait, in the order of their turns.
            send_away: begins to end a session.
        """
        given, held = free + self.coming, self.held()
        for place, (_, waiting) in enumerate(turns):
            accounts = waiting.opening.accounts
            if place >= given:
                leaver = self.leaver(accounts, held)
                if leaver is None:
                    return
                held.subtract(leaver.opening.accounts)
                send_away(leaver)
            held.update(accounts)

    def _staying(self) -> list[SessionEntry]:
        entries = self._entries.values()
        return [each for each in entries if each.state is not EntryState.CLOSING]
