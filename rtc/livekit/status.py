"""The status of a world, as attributes of its participant.

`Status` is a value and `note` a pure function from it and an event to the next; `StatusBoard` sends
changes to the room, at a limited rate, and everything again after a reconnection.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace

from livekit import rtc

from reverie.rtc.livekit.options import BridgeOptions
from reverie.rtc.livekit.vocabulary import ATTRIBUTE
from reverie.sessions.protocol.events import (
    AnyEvent,
    ControlApplied,
    Error,
    RequestQueued,
    RequestStarted,
    SessionAttached,
    SessionClosed,
    SessionRecovering,
    SessionUpdated,
)
from reverie.sessions.protocol.session_view import SessionView

ANSWER_S = 1.0
"""Limit for the answer to an update. The SDK misses an answer that arrives before it listens for
it, so a longer wait would be in vain; the same update sent twice changes nothing."""
VALUE_CHARS = 500
"""Longer values are cut: all attributes of a participant share one limit."""


@dataclass(frozen=True, slots=True)
class Status:
    """The attributes, named with the prefix `world.`; empty ones are left out.

    Attributes:
        status: `starting`, `queued`, `live`, `paused`, `parked`, `recovering` or `ended`.
        driver: identity of the driver.
        asking: identity of the last participant who asked to drive.
        keys: the keys of the controls, separated by commas, for a front end to offer.
        axes: the axes, likewise.
        camera: the input stream that takes pictures.
        turns: `yes` where the program takes turns (mode `turn`).
        fps: pictures sent a second.
        applied: the newest control that was applied.
        error: code of the newest error.
        reason: why the world has ended.
    """

    status: str = "starting"
    model: str = ""
    program: str = ""
    prompt: str = ""
    driver: str = ""
    asking: str = ""
    viewers: str = ""
    keys: str = ""
    axes: str = ""
    camera: str = ""
    turns: str = ""
    fps: str = ""
    applied: str = ""
    unknown_words: str = ""
    error: str = ""
    reason: str = ""

    def values(self) -> Iterator[tuple[str, str]]:
        """Yield the name and the value of each."""
        return ((each.name, str(getattr(self, each.name))) for each in fields(self))

    def attributes(self) -> dict[str, str]:
        """Return them as attributes of a participant."""
        return {ATTRIBUTE + name: value[:VALUE_CHARS] for name, value in self.values()}


def note(status: Status, event: AnyEvent) -> Status:
    """Return the status after an event."""
    match event:
        case SessionAttached(view=view) | SessionUpdated(view=view):
            return _seen(status, view)
        case RequestQueued():
            return replace(status, status="queued")
        case RequestStarted():
            return replace(status, status="live")
        case SessionRecovering():
            return replace(status, status="recovering")
        case ControlApplied(control=control, unknown_words=unknown):
            words = ", ".join(unknown) if unknown or status.applied != control else ""
            return replace(status, applied=control, unknown_words=words)
        case Error(code=code, command=None):
            return replace(status, error=code)
        case SessionClosed(reason=reason):
            return replace(status, status="ended", reason=reason)
    return status


def _seen(status: Status, view: SessionView) -> Status:
    names = {"active": "live", "detached": "live", "created": "starting", "queued": "queued"}
    over = {"closed": "ended", "failed": "ended"}
    now = {**names, **over}.get(view.state, view.state)
    kept = status.status in ("parked", "ended") and now not in ("ended",)
    camera = next((each.name for each in view.inputs if each.kind == "video"), "")
    return replace(
        status,
        status=status.status if kept else now,
        model=view.model,
        program=view.program,
        prompt=view.prompt,
        keys=",".join(key for each in view.controls for key in each.keys),
        axes=",".join(each.name for each in view.controls if not each.keys),
        camera=camera,
        turns="yes" if view.takes_turns else "",
    )


class StatusBoard:
    """Keeps the status, and sends its changes to the room.

    Attributes:
        lost: whether the connection to the session is lost, so that its status is unknown.
    """

    def __init__(self, options: BridgeOptions) -> None:
        self.status = Status()
        self.lost = False
        self._options = options
        self._told: dict[str, str | None] = {}  # None: the room has this value or another one
        self._named: set[str] = set()  # all that the room may have, also from a send without answer
        self._changed = asyncio.Event()
        self._idle = asyncio.Event()

    def change(self, **values: str) -> None:
        """Change some of the attributes."""
        self.put(replace(self.status, **values))

    def put(self, status: Status) -> None:
        """Send a status to the room soon. Never waits."""
        if status != self.status:
            self.status = status
            self._idle.clear()
            self._changed.set()

    @property
    def shown(self) -> Status:
        """The status for the room: a lost session that may return is recovering."""
        if self.lost and self.status.status != "ended":
            return replace(self.status, status="recovering")
        return self.status

    def lose(self, lost: bool) -> None:
        """Note that the connection to the session is lost, or restored. Never waits."""
        if lost != self.lost:
            self.lost = lost
            self._idle.clear()
            self._changed.set()

    def forget(self) -> None:
        """Send everything again, because the room may have lost it."""
        self._told = dict.fromkeys(self._named)
        self._idle.clear()
        self._changed.set()

    async def all_told(self) -> None:
        """Wait until the room has all of it, while `tell` runs."""
        await self._idle.wait()

    async def tell(self, speaker: rtc.LocalParticipant) -> None:
        """Send changes until cancelled; those that the room does not take are sent again."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._tell(speaker)
            if not self._changed.is_set():
                self._idle.set()
            await asyncio.sleep(1 / self._options.attributes_per_s)

    async def retract(self, speaker: rtc.LocalParticipant) -> None:
        """Remove the attributes: the world has left the room."""
        self._told = dict.fromkeys(self._named)
        with suppress(TimeoutError):
            async with asyncio.timeout(ANSWER_S):
                await speaker.set_attributes(dict.fromkeys(sorted(self._named), ""))

    async def _tell(self, speaker: rtc.LocalParticipant) -> None:
        wanted = self.shown.attributes()
        changes = changed(self._told, wanted)
        if not changes:
            return
        self._named |= {name for name, value in changes.items() if value}
        try:
            async with asyncio.timeout(ANSWER_S):
                await speaker.set_attributes(changes)
        except TimeoutError:
            self._told |= dict.fromkeys(changes)
            self._changed.set()
        else:
            self._told = {**wanted}


def changed(told: Mapping[str, str | None], wanted: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes to send; an empty value removes one."""
    return {name: value for name, value in wanted.items() if told.get(name, "") != value}
