"""The one way from a room to its session: whose wishes count, within limits, with typed refusals.

Everything that changes the session goes through here, so that the rule of the one driver, the time
limits and the record of who wanted what are in one place. The program that runs the bridge (an
agent, its tools) asks as `OWN`, and is never refused for somebody else's driving.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from reverie.rtc.livekit.control_lock import ControlLock, LockChange
from reverie.rtc.livekit.errors import SteeringError
from reverie.rtc.livekit.input_queue import InputStep
from reverie.rtc.livekit.options import BridgeOptions
from reverie.rtc.rate_limit import TokenBucket
from reverie.sessions import CommandError, ErrorCode, Session, SessionError

OWN = ""
"""Stands for the program that runs the bridge; no participant has an empty identity."""

REQUESTS_PER_S = 200
REQUESTS_AT_ONCE = 400
"""Packets, texts and calls of one participant."""

REMEMBERED = 1024
"""Controls of which it is known whose they were."""


@dataclass(frozen=True, slots=True)
class Author:
    """Who wanted a control, and what they call it."""

    by: str
    tag: str | None = None


class CommandGateway:
    """Takes wishes to a session; `changed` is called when the seat changes hands.

    Attributes:
        here: tells whether somebody is in the room: what they sent may come after they have left.
    """

    def __init__(
        self, session: Session, options: BridgeOptions, changed: Callable[[LockChange], None]
    ) -> None:
        self.control_lock = ControlLock(options.control_idle_s)
        self.here: Callable[[str], bool] = lambda _: True
        self._session = session
        self._options = options
        self._changed = changed
        self._buckets: dict[str, TokenBucket] = {}  # of who is in the room and has wished
        self._authors: OrderedDict[str, Author] = OrderedDict()

    def author(self, control: str) -> Author | None:
        """Return whose a control was, if that is still known."""
        return self._authors.get(control)

    def admit(self, by: str) -> None:
        """Accept that somebody asks for anything at all.

        Raises:
            SteeringError: they ask too often.
        """
        now_s = _now_s()
        bucket = self._buckets.get(by)
        if bucket is None:
            bucket = self._buckets[by] = TokenBucket(REQUESTS_PER_S, REQUESTS_AT_ONCE, now_s)
        wait_s = bucket.wait_s(now_s)
        if wait_s:
            message = f"requests are limited to {REQUESTS_PER_S} a second"
            raise SteeringError("rate_limited", message, retry_after_s=round(wait_s, 3))

    def check(self, by: str) -> None:
        """Accept that somebody may steer; nothing changes by that.

        Raises:
            SteeringError: somebody else drives, or they have left.
        """
        if by != OWN:
            self.control_lock.check(by)
            if not self.here(by):
                raise SteeringError("not_here", f"{by!r} is not in the room")

    def check_saying(self, by: str) -> None:
        """Accept that somebody may say what the world should become; likewise.

        Raises:
            SteeringError: who drives may, and that is somebody else.
        """
        if self._options.prompts_from == "driver":
            self.check(by)

    def steered(self, by: str) -> None:
        """Note that what somebody wished counts: they take a free seat by it, if still here."""
        if by != OWN and self.here(by):
            with suppress(
                SteeringError
            ):  # somebody was faster: the wish counted, the seat is theirs
                self._note(self.control_lock.steer(by, _now_s()))

    def take_control(self, by: str) -> None:
        """Take the seat, if it is free.

        Raises:
            SteeringError: somebody else drives, or they have left.
        """
        if not self.here(by):
            raise SteeringError("not_here", f"{by!r} is not in the room")
        self._note(self.control_lock.take(by, _now_s()))

    def hand_over_control(self, by: str, to: str | None) -> None:
        """Hand the seat over, or get up from it.

        Raises:
            SteeringError: it is not theirs.
        """
        self._note(self.control_lock.hand(by, to, _now_s()))

    def left(self, identity: str) -> None:
        """Note that a participant is gone."""
        self._buckets.pop(identity, None)
        self._note(self.control_lock.left(identity))

    async def steer(self, steer: InputStep) -> str:
        """Do what was admitted before: tell the session of a key or of axes."""
        if not steer.action:
            return await self._ask(self._session.release_all(), Author(steer.by, steer.tag))
        asking = self._session.push_action(steer.action, edge=steer.edge)
        return await self._ask(asking, Author(steer.by, steer.tag))

    async def act(
        self,
        by: str,
        action: Mapping[str, str | float],
        edge: Literal["tap", "press", "release"] = "tap",
        tag: str | None = None,
    ) -> str:
        """Press or move, and return the control's id; who drives, or nobody yet."""
        self.check(by)
        control = await self.steer(InputStep(by, action, edge, tag))
        self.steered(by)
        if by != OWN and not self.here(by) and self.control_lock.driver is None:
            await self.steer(InputStep(by, {}))  # nobody is left to let go of the key
        return control

    async def say(
        self,
        by: str,
        text: str,
        mode: Literal["replace", "append", "turn"] = "replace",
        tag: str | None = None,
    ) -> str:
        """Say what the world should become, and return the control's id."""
        self.check_saying(by)
        control = await self._ask(self._session.push_text(text, mode=mode), Author(by, tag))
        if self._options.prompts_from == "driver":
            self.steered(by)
        return control

    async def tune(self, by: str, parameters: Mapping[str, float]) -> str:
        """Change parameters of the program, and return the control's id."""
        self.check(by)
        for name in ("prompt", "reset"):  # which `update` of a session takes for something else
            if name in parameters:
                raise SteeringError("unknown_parameter", "no such parameter", field=name)
        asking = self._session.update(prompt=None, reset=False, **parameters)
        control = await self._ask(asking, Author(by))
        self.steered(by)
        return control

    async def do(self, by: str, asking: Callable[[Session], Awaitable[str]]) -> str:
        """Ask the session for anything else, and return the command's id.

        Raises:
            SteeringError: it is refused, or not answered in time.
        """
        self.check(by)
        command = await self._ask(asking(self._session), Author(by))
        self.steered(by)
        return command

    def _note(self, change: LockChange | None) -> None:
        if change is not None:
            self._changed(change)

    async def _ask(self, asking: Awaitable[str], author: Author) -> str:
        try:
            async with asyncio.timeout(self._options.command_s):
                command = await asking
        except CommandError as error:
            raise SteeringError.of(error.refusal) from None
        except TimeoutError:
            message = f"the session did not answer within {self._options.command_s:g} s"
            raise SteeringError(ErrorCode.TIMED_OUT, message, retry_after_s=1.0) from None
        except SessionError as error:
            raise SteeringError(ErrorCode.CLOSED, str(error)) from None
        self._authors[command] = author
        while len(self._authors) > REMEMBERED:
            self._authors.popitem(last=False)
        return command


def _now_s() -> float:
    return asyncio.get_running_loop().time()
