"""What was pressed and moved, between the room's callbacks and the task that tells the session.

Callbacks may not wait, so what they bring waits here, bounded: keys in order, at most so many; axes
merge into what waits of them already, as their control says, so that a flood of moves costs one
command. A key that finds no room is refused, but then all keys are owed a release: none can hang.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from reverie.rtc.livekit.errors import SteeringError
from reverie.rtc.livekit.inputs import AnyInput, AxesInput, KeyInput, ReleaseInput
from reverie.sessions.events import ControlView

WAITING = 256
"""Inputs that may wait."""


@dataclass(frozen=True, slots=True)
class Steer:
    """One thing to tell the session; an empty `action` lets go of all keys.

    Attributes:
        by: the identity of who did it.
        tag: what they call it.
    """

    by: str
    action: Mapping[str, str | float]
    edge: Literal["tap", "press", "release"] = "tap"
    tag: str | None = None


RELEASE_ALL = Steer("", {})
"""All keys are let go of, which nobody in particular asked for."""


class Steering:
    """A bounded queue of inputs that refuses what finds no room; axes merge.

    Attributes:
        overtaken: moves that came after newer ones and were left out.
    """

    def __init__(self) -> None:
        self.overtaken = 0
        self._waiting: deque[Steer] = deque()
        self._sequence: dict[str, int] = {}  # by sender
        self._news = asyncio.Event()

    def put(self, by: str, given: AnyInput, controls: tuple[ControlView, ...]) -> None:
        """Add an input. Never waits.

        Args:
            controls: those of the program.

        Raises:
            SteeringError: there is no such key, or no room.
        """
        match given:
            case KeyInput(key=key, edge=edge, tag=tag):
                control = given.control or _control_of(key, controls)
                self._add(Steer(by, {control: key}, edge, tag))
            case AxesInput():
                self._move(by, given, {each.name: each for each in controls})
            case ReleaseInput(tag=tag):
                self._add(Steer(by, {}, tag=tag))
        self._news.set()

    def release(self, by: str) -> None:
        """Let go of all keys, and forget what of theirs waits: they steer no more."""
        self._waiting = deque(each for each in self._waiting if each.by != by)
        self._sequence.pop(by, None)
        self._owe_release()
        self._news.set()

    async def take(self) -> Steer:
        """Wait for the next one and take it. Safe to cancel: then nothing is taken."""
        while not self._waiting:
            self._news.clear()
            await self._news.wait()
        return self._waiting.popleft()

    def _owe_release(self) -> None:
        """Have all keys let go of after what waits; there is always room for that."""
        if not self._waiting or self._waiting[-1] != RELEASE_ALL:
            self._waiting.append(RELEASE_ALL)

    def _add(self, steer: Steer) -> None:
        if len(self._waiting) >= WAITING:
            if steer.edge == "release" or not steer.action:
                self._owe_release()
                self._news.set()
            raise SteeringError("too_many", f"{WAITING} inputs wait already", retry_after_s=0.5)
        self._waiting.append(steer)

    def _move(self, by: str, given: AxesInput, controls: Mapping[str, ControlView]) -> None:
        if given.seq is not None:
            if given.seq <= self._sequence.get(by, -1):
                self.overtaken += 1
                return
            self._sequence[by] = given.seq
        newest = self._waiting[-1] if self._waiting else None
        if newest is None or newest.by != by or not _moves(newest):
            self._add(Steer(by, dict(given.axes), tag=given.tag))
            return
        merged = {**newest.action, **given.axes}
        for name, before in newest.action.items():
            control = controls.get(name)
            if name in given.axes and control is not None and control.merge == "sum":
                both = float(before) + given.axes[name]
                merged[name] = min(max(both, control.low), control.high)
        self._waiting[-1] = Steer(by, merged, tag=given.tag or newest.tag)


def _moves(steer: Steer) -> bool:
    return bool(steer.action) and not any(isinstance(each, str) for each in steer.action.values())


def _control_of(key: str, controls: tuple[ControlView, ...]) -> str:
    for control in controls:
        if key in control.keys:
            return control.name
    known = ", ".join(key for control in controls for key in control.keys) or "none"
    raise SteeringError("unknown_key", f"no such key; known: {known}", field="key")
