"""Commands that wait for the one before them: bounded, but there is always room for a release."""

import asyncio
from collections import deque

from reverie.sessions.attachments.attachment import CommandRequest
from reverie.sessions.protocol.commands import PushAction, ReleaseAll


class PendingCommands:
    """The queue of one session. One consumer takes from it.

    A release that finds it full is not refused: it is remembered, and once the queue has been
    worked off every key is let go.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._orders: deque[CommandRequest] = deque()
        self._ready = asyncio.Event()
        self._release_owed = False

    def __len__(self) -> int:
        return len(self._orders)

    def put(self, order: CommandRequest) -> bool:
        """Add an order; False when there is no room for it."""
        if len(self._orders) >= self._capacity:
            return False
        self._orders.append(order)
        self._ready.set()
        return True

    def owe_release(self, order: CommandRequest) -> bool:
        """Remember a release that found no room; False when the order is none."""
        command = order.command
        releases = isinstance(command, ReleaseAll) or (
            isinstance(command, PushAction) and command.edge == "release"
        )
        self._release_owed = self._release_owed or releases
        return releases

    def take_owed(self) -> bool:
        """Tell whether keys must be let go now, and forget it."""
        if self._orders or not self._release_owed:
            return False
        self._release_owed = False
        return True

    async def take(self) -> CommandRequest:
        """Wait for the next order and take it. Safe to cancel: then nothing is taken."""
        while not self._orders:
            self._ready.clear()
            await self._ready.wait()
        return self._orders.popleft()

    def take_all(self) -> list[CommandRequest]:
        """Take what waits."""
        orders = list(self._orders)
        self._orders.clear()
        return orders
