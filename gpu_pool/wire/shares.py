"""Which account is served first and which gives way where slots are few. Pure.

Each slot is held on an account: an owner's, a network address's. One that is alone may hold all
slots. A newcomer goes ahead of accounts that hold more, and where one account holds at least two
slots more than another that has to wait, it gives one up. So however much one of them asks for,
each comes to an even share.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

Accounts = tuple[str, ...]
"""What a session is counted under; empty: under nothing, and so never before or behind others."""

MORE = 2
"""Slots that an account holds more than another one that waits; then one of them changes hands."""

T = TypeVar("T")


def held_by(all_accounts: Iterable[Accounts]) -> Counter[str]:
    """Return how many slots each account holds."""
    return Counter(account for accounts in all_accounts for account in accounts)


def load(accounts: Accounts, held: Counter[str]) -> int:
    """Return how many slots a session's accounts hold: of several accounts, the fullest counts."""
    return max((held[account] for account in accounts), default=0)


def in_turn(
    waiting: Sequence[T], accounts_of: Callable[[T], Accounts], held: Counter[str]
) -> list[tuple[int, T]]:
    """Return those that wait in the order in which they are served, each with its turn.

    Args:
        waiting: in the order in which they came.
        accounts_of: returns the accounts of each.
        held: slots by account; those of its account that wait before it count as held.
    """
    counted = Counter(held)
    turns = []
    for each in waiting:
        accounts = accounts_of(each)
        turns.append((load(accounts, counted), each))
        counted.update(accounts)
    return sorted(turns, key=lambda turn: turn[0])


def who_gives_way(
    holders: Sequence[tuple[T, Accounts]], newcomer: Accounts, held: Counter[str]
) -> T | None:
    """Return the holder that gives its slot up for a newcomer; None when none holds so much more.

    Args:
        holders: those who could, the first to go first.
        newcomer: accounts of a session that would get no slot otherwise.
        held: slots by account.
    """
    if not newcomer:
        return None
    least = load(newcomer, held) + MORE
    loads = [(load(accounts, held), holder) for holder, accounts in holders]
    return next((holder for much, holder in loads if much >= least), None)
