"""What a room is told of its world without asking: the attributes of the world's participant.

`Status` is a value and `note` a pure function from it and an event to the next; `StatusBoard` tells
the room what has changed, at most so often, and all of it anew after a reconnection.
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
    SessionView,
)

VALUE_CHARS = 500
"""Longer values are cut: all attributes of a participant share one limit."""


@dataclass(frozen=True, slots=True)
class Status:
    """The attributes, each under its name behind `world.`; an empty one is not there.

    Attributes:
        status: `starting`, `queued`, `live`, `paused`, `parked`, `recovering` or `ended`.
        driver: identity of who drives.
        asking: identity of who would like to.
        keys: of the controls, with commas between; what a front end needs to offer them.
        axes: likewise.
        camera: the input that takes pictures.
        turns: `yes` where the program can be asked things (mode `turn`).
        fps: pictures a second that went out of late.
        applied: the newest control that acts, with whose it was and its tag.
        error: code of the newest error.
        reason: why it has ended.
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
        """Return them as a room takes them."""
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
    """Keeps the status, and tells the room of it.

    Attributes:
        lost: whether the connection to the session is: nobody knows how it is meanwhile.
    """

    def __init__(self, options: BridgeOptions) -> None:
        self.status = Status()
        self.lost = False
        self._options = options
        self._told: dict[str, str] = {}
        self._changed = asyncio.Event()
        self._idle = asyncio.Event()

    def change(self, **values: str) -> None:
        """Change some of it."""
        self.put(replace(self.status, **values))

    def put(self, status: Status) -> None:
        """Have the room told soon. Never waits."""
        if status != self.status:
            self.status = status
            self._idle.clear()
            self._changed.set()

    @property
    def shown(self) -> Status:
        """The status as the room is told: a lost session that may come back is recovering."""
        if self.lost and self.status.status != "ended":
            return replace(self.status, status="recovering")
        return self.status

    def lose(self, lost: bool) -> None:
        """Note that the connection to the session is lost, or there again. Never waits."""
        if lost != self.lost:
            self.lost = lost
            self._idle.clear()
            self._changed.set()

    def forget(self) -> None:
        """Tell all of it anew: the room may have forgotten."""
        self._told = {}
        self._idle.clear()
        self._changed.set()

    async def all_told(self) -> None:
        """Wait until the room knows all of it, while `tell` runs."""
        await self._idle.wait()

    async def tell(self, speaker: rtc.LocalParticipant) -> None:
        """Tell changes until cancelled; those that the room does not take are told again."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._tell(speaker)
            if not self._changed.is_set():
                self._idle.set()
            await asyncio.sleep(1 / self._options.attributes_per_s)

    async def retract(self, speaker: rtc.LocalParticipant) -> None:
        """Take away what the room was told: the world is there no more."""
        told, self._told = self._told, {}
        with suppress(TimeoutError):
            async with asyncio.timeout(self._options.room_s):
                await speaker.set_attributes({name: "" for name, value in told.items() if value})

    async def _tell(self, speaker: rtc.LocalParticipant) -> None:
        wanted = self.shown.attributes()
        changes = changed(self._told, wanted)
        if not changes:
            return
        try:
            async with asyncio.timeout(self._options.room_s):
                await speaker.set_attributes(changes)
        except TimeoutError:
            self._changed.set()
        else:
            self._told = wanted


def changed(told: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """Return what has to be told: an empty value takes an attribute away."""
    return {name: value for name, value in wanted.items() if told.get(name, "") != value}
