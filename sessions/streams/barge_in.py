"""Barge-in: when a client speaks, the attachments are told, and the model stops speaking.

A program enables it by a parameter `barge_in` of its loop of text. The turn is told at once; the
model's utterance is broken off at its next step.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from reverie.media import SpeechEdge
from reverie.sessions.attachments.attached_clients import AttachedClients
from reverie.sessions.protocol.errors import CommandError
from reverie.sessions.protocol.events import TurnEnded, TurnStarted
from reverie.sessions.state.program_controls import ProgramControls
from reverie.sessions.state.session_state import SessionState

logger = logging.getLogger(__name__)

BARGE_IN = "barge_in"
"""The parameter that enables it: 1 or 0."""


class SpeechCancel(Protocol):
    """Breaks off the utterance of a loop; `Interruption.interrupt`."""

    async def __call__(self, command: str, loop: str | None = None) -> None:
        """Break off the utterance of a loop.

        Raises:
            CommandError: it refused, or could not be asked.
        """


class BargeIn:
    """Is told of speech, and interrupts. `run` is a child of the session."""

    def __init__(
        self,
        state: SessionState,
        controls: ProgramControls,
        attached: AttachedClients,
        cancel_speech: SpeechCancel,
    ) -> None:
        self._state = state
        self._attached = attached
        self._cancel_speech = cancel_speech
        self._loops = tuple(loop.name for loop in controls.loops if not loop.has_media)
        self._due = asyncio.Event()

    @property
    def wanted(self) -> bool:
        """Whether it is enabled now."""
        return self._state.parameters.get(BARGE_IN, 0.0) >= 0.5 and bool(self._loops)

    def heard(self, stream: str, edge: SpeechEdge) -> None:
        """Tell the attachments of a turn. Called on the event loop; never waits."""
        if not edge.began:
            ended = TurnEnded(stream=stream, pts_us=edge.pts_us, duration_us=edge.duration_us)
            self._attached.tell(ended)
            return
        wanted = self.wanted
        self._attached.tell(TurnStarted(stream=stream, pts_us=edge.pts_us, interrupts=wanted))
        if wanted:
            self._due.set()

    async def run(self) -> None:
        """Interrupt when it is due, until cancelled."""
        while True:
            await self._due.wait()
            self._due.clear()
            for loop in self._loops:
                try:
                    await self._cancel_speech(BARGE_IN, loop)
                except CommandError as error:
                    logger.info("session %s: no barge-in: %s", self._state.session, error)


Heard = Callable[[str, SpeechEdge], None]
"""`BargeIn.heard`."""
