"""Which connection makes way for another one when there are as many as there may be."""

import asyncio
from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from reverie.gpu_pool.wire.shares import Accounts, held_by, who_gives_way
from reverie.rtc.addresses import Addresses
from reverie.rtc.options import ServerOptions


@runtime_checkable
class Crowded(Protocol):
    """A connection that can be asked to make way for others."""

    transport: asyncio.Transport
    client: tuple[str, int] | None

    @property
    def is_idle(self) -> bool:
        """Whether nothing is asked on it."""

    def make_way(self) -> None:
        """End it: there are too many."""


def has_room(newcomer: Crowded, everybody: Iterable[object], options: ServerOptions) -> bool:
    """Make room for a connection beyond the limit; tell whether it may stay.

    Who holds at least two more than its address loses one, such as no request runs on first.
    """
    addresses = Addresses(options.trusted_proxies)
    standing = [
        each
        for each in everybody
        if isinstance(each, Crowded) and not each.transport.is_closing() and each is not newcomer
    ]
    if len(standing) < options.connections:
        return True
    holders = [(each, _accounts(each, addresses)) for each in standing]
    holders.sort(key=lambda holder: not holder[0].is_idle)
    held = held_by(accounts for _, accounts in holders)
    leaver = who_gives_way(holders, _accounts(newcomer, addresses), held)
    if leaver is not None:
        leaver.make_way()
    return leaver is not None


def _accounts(connection: Crowded, addresses: Addresses) -> Accounts:
    counted = addresses.of_peer(connection.client[0]) if connection.client else None
    return () if counted is None else (counted,)
