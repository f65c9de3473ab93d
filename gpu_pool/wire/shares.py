"""Who goes first and who gives way where places are few. Pure.

Each place is held on somebody's account: an owner's, a network address's. Whoever is alone may hold
all places. Who comes later goes ahead of those whose account holds more, and where one account
holds at least two places more than another that has to wait, it gives one up. So however much one
of them asks for, everybody comes to an even share.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

Accounts = tuple[str, ...]
"""What somebody is counted under; empty: under nothing, and so never before or behind others."""

MORE = 2
"""Places that an account holds more than another one that waits; then one of them changes hands."""

T = TypeVar("T")


def held_by(all_accounts: Iterable[Accounts]) -> Counter[str]:
    """Return how many places each account holds."""
    return Counter(account for accounts in all_accounts for account in accounts)


def load(accounts: Accounts, held: Counter[str]) -> int:
    """Return how many places somebody holds: of several accounts, the fullest counts."""
    return max((held[account] for account in accounts), default=0)


def in_turn(
    waiting: Sequence[T], accounts_of: Callable[[T], Accounts], held: Counter[str]
) -> list[tuple[int, T]]:
    """Return those who wait in the order in which they are served, each with its turn.

    Args:
        waiting: in the order in which they came.
        accounts_of: tells whose account each is on.
        held: places by account; those of its account that wait before somebody count as held.
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
    """Return who gives a place up for a newcomer; None when nobody holds so much more.

    Args:
        holders: those who could, the first to go first.
        newcomer: accounts of somebody who would get no place otherwise.
        held: places by account.
    """
    if not newcomer:
        return None
    least = load(newcomer, held) + MORE
    loads = [(load(accounts, held), holder) for holder, accounts in holders]
    return next((holder for much, holder in loads if much >= least), None)
