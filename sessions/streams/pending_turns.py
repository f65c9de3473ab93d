"""Turns of a session: which command each came with, and how many wait."""

from collections import OrderedDict
from itertools import islice

from reverie.engine.inputs import ControlId

REMEMBERED = 64
"""Settled turns whose command is kept, because their answer may still be under way."""


class PendingTurns:
    """The turns of one session. A turn waits until the loop begins to answer it, or drops it."""

    def __init__(self) -> None:
        self._commands: OrderedDict[ControlId, str] = OrderedDict()
        self._waiting: set[ControlId] = set()

    @property
    def waiting(self) -> int:
        """How many the loop has not begun to answer."""
        return len(self._waiting)

    def say(self, control: ControlId, command: str) -> None:
        """Note a turn that is sent to the loop."""
        self._commands[control] = command
        self._waiting.add(control)
        settled = [each for each in self._commands if each not in self._waiting]
        for old in islice(settled, max(0, len(settled) - REMEMBERED)):
            del self._commands[old]

    def settle(self, control: ControlId) -> None:
        """Note that a turn has its receipt."""
        self._waiting.discard(control)

    def command_of(self, control: ControlId | None) -> str | None:
        """Return the command of a turn; None for an utterance that answers no turn."""
        return None if control is None else self._commands.get(control)
