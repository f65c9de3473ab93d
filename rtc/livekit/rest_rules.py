"""When a world rests: nobody watches it, its own network is away, or somebody paused it.

A session is paused while any of these holds, so that nothing of the world is missed by anybody.
An empty room parks its world: it keeps its place, is touched now and then so that its server does
not think it idle, and ends when nobody has come back for long. One that still waits for a place
ends at once, for others wait behind it.
"""

import asyncio
from collections.abc import Callable
from enum import StrEnum

from reverie.rtc.livekit.options import BridgeOptions
from reverie.sessions import CommandError, Session, SessionError

AGAIN_S = 1.0
"""After a pause or a resume that was not answered."""


class Rest(StrEnum):
    """Why a world rests."""

    EMPTY = "empty"
    AWAY = "away"
    ASKED = "asked"


class RestRules:
    """Keeps a session going or resting as the room wants it."""

    def __init__(
        self, session: Session, options: BridgeOptions, changed: Callable[[], None]
    ) -> None:
        """Know nobody yet; `changed` is called when reasons or viewers have changed."""
        self.viewers: set[str] = set()
        self.reasons: set[Rest] = set()
        self._session = session
        self._options = options
        self._changed = changed
        self._told: bool | None = False  # whether it was told to pause; None: nobody knows
        self._moved = asyncio.Event()  # somebody came or left
        self._rested = asyncio.Event()  # a reason came or went

    @property
    def parked(self) -> bool:
        """Whether it rests for want of viewers."""
        return Rest.EMPTY in self.reasons

    def came(self, identity: str) -> None:
        """Note a viewer; a parked world goes on."""
        self.viewers.add(identity)
        self._moved.set()
        self._changed()

    def left(self, identity: str) -> None:
        """Note that a viewer is gone."""
        self.viewers.discard(identity)
        self._moved.set()
        self._changed()

    def rest(self, reason: Rest, wanted: bool) -> None:
        """Rest for a reason, or no more for it."""
        if wanted != (reason in self.reasons):
            (self.reasons.add if wanted else self.reasons.discard)(reason)
            self._rested.set()
            self._changed()

    async def watch(self) -> None:
        """Park and revive; return when nobody has come back in time, or nobody waits in line."""
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
        """Pause and resume the session as the reasons come and go, until cancelled."""
        while True:
            self._rested.clear()
            wanted = bool(self.reasons)
            if wanted is not self._told:
                self._told = None
                self._told = wanted if await self._ask(pause=wanted) else None
            limit_s = self._options.touch_s if wanted else None
            if not await _within(AGAIN_S if self._told is None else limit_s, self._rested):
                self._told = None  # tell it again: it did not answer, or has to be touched

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
            return True  # it is over, which its stream tells
        return True


async def _within(limit_s: float | None, event: asyncio.Event) -> bool:
    """Wait for an event; tell whether it came in time."""
    try:
        async with asyncio.timeout(limit_s):
            await event.wait()
    except TimeoutError:
        return False
    return True
