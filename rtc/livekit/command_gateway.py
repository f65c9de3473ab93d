"""The one path from a room to its session: it checks the driver and rate limits, and refuses typed.

Every command goes through here, so that the control lock, the time limits and the authors of
controls are in one place. The program that runs the bridge (an
agent, its tools) asks as `OWN`, and is never refused because of a driver.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from reverie.rtc.livekit.control_lock import ControlLock, LockChange
from reverie.rtc.livekit.errors import InputRefusedError
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
"""Controls whose authors are remembered."""


@dataclass(frozen=True, slots=True)
class Author:
    """The participant who sent a control, and its tag."""

    by: str
    tag: str | None = None


class CommandGateway:
    """Takes requests to a session; `changed` is called when the driver changes.

    Attributes:
        here: tells whether a participant is in the room; packets may arrive after they have left.
    """

    def __init__(
        self, session: Session, options: BridgeOptions, changed: Callable[[LockChange], None]
    ) -> None:
        self.control_lock = ControlLock(options.control_idle_s)
        self.here: Callable[[str], bool] = lambda _: True
        self._session = session
        self._options = options
        self._changed = changed
        self._buckets: dict[str, TokenBucket] = {}  # by identity
        self._authors: OrderedDict[str, Author] = OrderedDict()

    def author(self, control: str) -> Author | None:
        """Return the author of a control, if it is still remembered."""
        return self._authors.get(control)

    def admit(self, by: str) -> None:
        """Count a request against the rate limit of its sender.

        Raises:
            InputRefusedError: the sender is over the rate limit.
        """
        now_s = _now_s()
        bucket = self._buckets.get(by)
        if bucket is None:
            bucket = self._buckets[by] = TokenBucket(REQUESTS_PER_S, REQUESTS_AT_ONCE, now_s)
        wait_s = bucket.wait_s(now_s)
        if wait_s:
            message = f"requests are limited to {REQUESTS_PER_S} a second"
            raise InputRefusedError("rate_limited", message, retry_after_s=round(wait_s, 3))

    def check(self, by: str) -> None:
        """Check that a participant may steer; changes nothing.

        Raises:
            InputRefusedError: another participant drives, or they have left.
        """
        if by != OWN:
            self.control_lock.check(by)
            if not self.here(by):
                raise InputRefusedError("not_here", f"{by!r} is not in the room")

    def check_saying(self, by: str) -> None:
        """Check that a participant may send prompts; changes nothing.

        Raises:
            InputRefusedError: only the driver may, and another participant drives.
        """
        if self._options.prompts_from == "driver":
            self.check(by)

    def steered(self, by: str) -> None:
        """Record an accepted request; its sender takes a free lock, if still in the room."""
        if by != OWN and self.here(by):
            with suppress(
                InputRefusedError
            ):  # another took the lock first; the request still counted
                self._note(self.control_lock.steer(by, _now_s()))

    def take_control(self, by: str) -> None:
        """Take the control lock, if it is free.

        Raises:
            InputRefusedError: another participant drives, or they have left.
        """
        if not self.here(by):
            raise InputRefusedError("not_here", f"{by!r} is not in the room")
        self._note(self.control_lock.take(by, _now_s()))

    def hand_over_control(self, by: str, to: str | None) -> None:
        """Hand the control lock over, or release it.

        Raises:
            InputRefusedError: the caller does not drive.
        """
        self._note(self.control_lock.hand(by, to, _now_s()))

    def left(self, identity: str) -> None:
        """Record that a participant has left."""
        self._buckets.pop(identity, None)
        self._note(self.control_lock.left(identity))

    async def steer(self, steer: InputStep) -> str:
        """Send an input that was checked before to the session."""
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
        """Press keys or move axes, and return the control's id."""
        self.check(by)
        control = await self.steer(InputStep(by, action, edge, tag))
        self.steered(by)
        if by != OWN and not self.here(by) and self.control_lock.driver is None:
            await self.steer(InputStep(by, {}))  # no driver is left to release the key
        return control

    async def say(
        self,
        by: str,
        text: str,
        mode: Literal["replace", "append", "turn"] = "replace",
        tag: str | None = None,
    ) -> str:
        """Send a prompt, and return the control's id."""
        self.check_saying(by)
        control = await self._ask(self._session.push_text(text, mode=mode), Author(by, tag))
        if self._options.prompts_from == "driver":
            self.steered(by)
        return control

    async def tune(self, by: str, parameters: Mapping[str, float]) -> str:
        """Change parameters of the program, and return the control's id."""
        self.check(by)
        for name in ("prompt", "reset", "act"):  # arguments of `Session.update`
            if name in parameters:
                raise InputRefusedError("unknown_parameter", "no such parameter", field=name)
        asking = self._session.update(prompt=None, reset=False, act="after", **parameters)
        control = await self._ask(asking, Author(by))
        self.steered(by)
        return control

    async def do(self, by: str, asking: Callable[[Session], Awaitable[str]]) -> str:
        """Send any other command, and return its id.

        Raises:
            InputRefusedError: the command is refused, or not answered in time.
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
            raise InputRefusedError.of(error.refusal) from None
        except TimeoutError:
            message = f"the session did not answer within {self._options.command_s:g} s"
            raise InputRefusedError(ErrorCode.TIMED_OUT, message, retry_after_s=1.0) from None
        except SessionError as error:
            raise InputRefusedError(ErrorCode.CLOSED, str(error)) from None
        self._authors[command] = author
        while len(self._authors) > REMEMBERED:
            self._authors.popitem(last=False)
        return command


def _now_s() -> float:
    return asyncio.get_running_loop().time()
