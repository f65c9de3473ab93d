"""Commands that wait for the one before them: bounded, but there is always room for a release."""

import asyncio
from collections import deque

from reverie.sessions.attachments.attachment import CommandRequest
from reverie.sessions.protocol.commands import PushAction, ReleaseAll


class PendingCommands:
    """The queue of one session. One consumer takes from it.

    A release of keys that finds it full is not refused: it is remembered, and once the queue is
    empty every key is released.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._requests: deque[CommandRequest] = deque()
        self._ready = asyncio.Event()
        self._release_owed = False

    def __len__(self) -> int:
        return len(self._requests)

    def put(self, request: CommandRequest) -> bool:
        """Add a command; False when there is no room for it."""
        if len(self._requests) >= self._capacity:
            return False
        self._requests.append(request)
        self._ready.set()
        return True

    def owe_release(self, request: CommandRequest) -> bool:
        """Remember a release that found no room; False when it is another command."""
        command = request.command
        releases = isinstance(command, ReleaseAll) or (
            isinstance(command, PushAction) and command.edge == "release"
        )
        self._release_owed = self._release_owed or releases
        return releases

    def take_owed(self) -> bool:
        """Return whether keys must be released now, and forget it."""
        if self._requests or not self._release_owed:
            return False
        self._release_owed = False
        return True

    async def take(self) -> CommandRequest:
        """Wait for the next command and take it. Safe to cancel: then nothing is taken."""
        while not self._requests:
            self._ready.clear()
            await self._ready.wait()
        return self._requests.popleft()

    def take_all(self) -> list[CommandRequest]:
        """Take all that wait."""
        requests = list(self._requests)
        self._requests.clear()
        return requests
