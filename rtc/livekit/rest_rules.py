"""When a session is paused: without viewers, without its connection, or on request.

A session is paused while any of these holds, so that no viewer misses a part of the world. A room
without viewers parks its world: it keeps its slot, is paused again now and then so that its server
does not count it as idle, and ends after `keep_empty_s`. A world that still waits for a slot ends
at once, because others wait behind it.
"""

import asyncio
from collections.abc import Callable
from enum import StrEnum

from reverie.rtc.livekit.options import BridgeOptions
from reverie.sessions import CommandError, Session, SessionError

AGAIN_S = 1.0
"""Pause before a command that was not answered is sent again."""


class Rest(StrEnum):
    """Why a session is paused."""

    EMPTY = "empty"
    AWAY = "away"
    ASKED = "asked"


class RestRules:
    """Pauses and resumes a session as the room needs it."""

    def __init__(
        self, session: Session, options: BridgeOptions, changed: Callable[[], None]
    ) -> None:
        """Start without viewers; `changed` is called when reasons or viewers have changed."""
        self.viewers: set[str] = set()
        self.reasons: set[Rest] = set()
        self._session = session
        self._options = options
        self._changed = changed
        self._told: bool | None = False  # whether it was told to pause; None: unknown
        self._moved = asyncio.Event()  # a viewer joined or left
        self._rested = asyncio.Event()  # a reason was added or removed

    @property
    def parked(self) -> bool:
        """Whether the session is paused because it has no viewers."""
        return Rest.EMPTY in self.reasons

    def came(self, identity: str) -> None:
        """Record a viewer; a parked world continues."""
        self.viewers.add(identity)
        self._moved.set()
        self._changed()

    def left(self, identity: str) -> None:
        """Record that a viewer has left."""
        self.viewers.discard(identity)
        self._moved.set()
        self._changed()

    def rest(self, reason: Rest, wanted: bool) -> None:
        """Add or remove a reason to pause."""
        if wanted != (reason in self.reasons):
            (self.reasons.add if wanted else self.reasons.discard)(reason)
            self._rested.set()
            self._changed()

    async def watch(self) -> None:
        """Park and revive; return after `keep_empty_s`, or when a queued world has no viewers."""
        while True:
            if self.viewers:
                self.rest(Rest.EMPTY, False)
                await self._viewers(None, some=False)
            elif not await self._viewers(self._options.empty_after_s, some=True):
                if self._session.view.state == "queued":
                    return
                self.rest(Rest.EMPTY, True)
                if not await self._viewers(self._options.keep_empty_s, some=True):
                    return

    async def keep(self) -> None:
        """Pause and resume the session as the reasons change, until cancelled."""
        while True:
            self._rested.clear()
            wanted = bool(self.reasons)
            if wanted is not self._told:
                self._told = None
                self._told = wanted if await self._ask(pause=wanted) else None
            limit_s = self._options.touch_s if wanted else None
            if not await _within(AGAIN_S if self._told is None else limit_s, self._rested):
                self._told = None  # send it again: no answer, or `touch_s` has passed

    async def _viewers(self, limit_s: float | None, *, some: bool) -> bool:
        """Wait until there are some, or none; tell whether that came in time."""
        loop = asyncio.get_running_loop()
        end_s = None if limit_s is None else loop.time() + limit_s
        while bool(self.viewers) is not some:
            self._moved.clear()
            if not await _within(None if end_s is None else end_s - loop.time(), self._moved):
                return False
        return True

    async def _ask(self, *, pause: bool) -> bool:
        try:
            async with asyncio.timeout(self._options.command_s):
                await (self._session.pause() if pause else self._session.resume())
        except (CommandError, TimeoutError):
            return False
        except SessionError:
            return True  # the session has ended, which its stream tells
        return True


async def _within(limit_s: float | None, event: asyncio.Event) -> bool:
    """Wait for an event; tell whether it came in time."""
    try:
        async with asyncio.timeout(limit_s):
            await event.wait()
    except TimeoutError:
        return False
    return True
