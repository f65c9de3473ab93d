"""Keys and axes, queued between the room's callbacks and the task that sends them to the session.

Callbacks may not wait, so inputs wait here, bounded: keys in order; axes merge into moves that wait
already, as their control says, so that a flood of moves costs one command. A full queue refuses a
key; if it was a release, all keys are released after the queue, so that none stays pressed.
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from reverie.rtc.livekit.errors import InputRefusedError
from reverie.rtc.livekit.inputs import AnyInput, RoomAxesInput, RoomKeyInput
from reverie.sessions.protocol.session_view import ControlView

WAITING = 256
"""Inputs that may wait."""


@dataclass(frozen=True, slots=True)
class InputStep:
    """One input for the session; an empty `action` releases all keys.

    Attributes:
        by: the identity of the sender.
        tag: the sender's name for it.
    """

    by: str
    action: Mapping[str, str | float]
    edge: Literal["tap", "press", "release"] = "tap"
    tag: str | None = None


RELEASE_ALL = InputStep("", {})
"""All keys are released, without a sender."""


class RoomInputQueue:
    """A bounded queue of inputs, which refuses inputs while it is full; axes merge.

    Attributes:
        overtaken: moves that arrived after newer ones and were left out.
    """

    def __init__(self) -> None:
        self.overtaken = 0
        self._waiting: deque[InputStep] = deque()
        self._sequence: dict[str, int] = {}  # by sender
        self._arrived = asyncio.Event()

    def put(self, by: str, given: Sequence[AnyInput], controls: tuple[ControlView, ...]) -> None:
        """Add the inputs of one packet, or none of them. Never waits.

        Args:
            controls: the controls of the program.

        Raises:
            InputRefusedError: an input is not for this program, or the queue is too full.
        """
        axes = {each.name: each for each in controls if not each.keys}
        steers = [_steer_of(by, each, controls, axes) for each in given]
        if len(self._waiting) + len(steers) > WAITING:
            if any(each.edge == "release" or not each.action for each in steers):
                self._owe_release()
            raise InputRefusedError("too_many", f"{WAITING} inputs wait already", retry_after_s=0.5)
        for each, steer in zip(given, steers, strict=True):
            if not isinstance(each, RoomAxesInput):
                self._waiting.append(steer)
            elif self._is_newest(by, each):
                self._move(steer, axes)
        self._arrived.set()

    def release(self, by: str) -> None:
        """Release all keys, and drop the waiting inputs of a participant who no longer steers."""
        self._waiting = deque(each for each in self._waiting if each.by != by)
        self._sequence.pop(by, None)
        self._owe_release()

    async def take(self) -> InputStep:
        """Wait for the next input and take it. Safe to cancel: then nothing is taken."""
        while not self._waiting:
            self._arrived.clear()
            await self._arrived.wait()
        return self._waiting.popleft()

    def _owe_release(self) -> None:
        """Queue a release of all keys at the end, also when the queue is full."""
        if not self._waiting or self._waiting[-1] != RELEASE_ALL:
            self._waiting.append(RELEASE_ALL)
        self._arrived.set()

    def _is_newest(self, by: str, given: RoomAxesInput) -> bool:
        if given.seq is None:
            return True
        if given.seq <= self._sequence.get(by, -1):
            self.overtaken += 1
            return False
        self._sequence[by] = given.seq
        return True

    def _move(self, steer: InputStep, axes: Mapping[str, ControlView]) -> None:
        newest = self._waiting[-1] if self._waiting else None
        if newest is None or newest.by != steer.by or not _moves(newest):
            self._waiting.append(steer)
            return
        merged = {**newest.action, **steer.action}
        for name, before in newest.action.items():
            if name in steer.action and axes[name].merge == "sum":
                both = float(before) + float(steer.action[name])
                merged[name] = min(max(both, axes[name].low), axes[name].high)
        self._waiting[-1] = InputStep(steer.by, merged, tag=steer.tag or newest.tag)


def _moves(steer: InputStep) -> bool:
    return bool(steer.action) and not any(isinstance(each, str) for each in steer.action.values())


def _steer_of(
    by: str,
    given: AnyInput,
    controls: tuple[ControlView, ...],
    axes: Mapping[str, ControlView],
) -> InputStep:
    match given:
        case RoomKeyInput(key=key, edge=edge, tag=tag):
            return InputStep(by, {_control_of(key, given.control, controls): key}, edge, tag)
        case RoomAxesInput():
            for name, amount in given.axes.items():
                _check_axis(name, amount, axes)
            return InputStep(by, dict(given.axes), tag=given.tag)
    return InputStep(by, {}, tag=given.tag)


def _control_of(key: str, wanted: str | None, controls: tuple[ControlView, ...]) -> str:
    fitting = [each for each in controls if wanted in (None, each.name)]
    for control in fitting:
        if key in control.keys:
            return control.name
    known = ", ".join(key for control in fitting for key in control.keys) or "none"
    raise InputRefusedError("unknown_key", f"no such key; known: {known}", field="key")


def _check_axis(name: str, amount: float, axes: Mapping[str, ControlView]) -> None:
    if name not in axes:
        known = ", ".join(axes) or "none"
        message = f"no such axis; known: {known}"
        raise InputRefusedError("unknown_control", message, field=f"axes.{name}")
    low, high = axes[name].low, axes[name].high
    if not low <= amount <= high:
        message = f"{amount:g} is outside {low:g} to {high:g}"
        raise InputRefusedError("out_of_range", message, field=f"axes.{name}")
