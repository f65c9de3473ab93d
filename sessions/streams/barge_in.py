"""Barge-in: when a client speaks, the attachments are told, and the model stops speaking.

A loop of text offers it by a parameter with the role `BARGE_IN`; the client enables it. The turn is
told at once; the model's utterance is broken off at its next step.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from reverie.media import SpeechEdge
from reverie.sessions.attachments.attached_clients import AttachedClients
from reverie.sessions.protocol.errors import CommandError
from reverie.sessions.protocol.media_events import TurnEnded, TurnStarted
from reverie.sessions.state.program_controls import ProgramControls
from reverie.sessions.state.session_state import SessionState

logger = logging.getLogger(__name__)

_COMMAND = "barge_in"
"""What `session.interrupted` calls the command, since no client has sent one."""


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
        self._parameters = controls.barge_in
        self._due = asyncio.Event()

    @property
    def loops(self) -> tuple[str, ...]:
        """The loops for which it is enabled now."""
        values = self._state.parameters
        return tuple(
            loop for loop, name in self._parameters.items() if values.get(name, 0.0) >= 0.5
        )

    def heard(self, stream: str, edge: SpeechEdge) -> None:
        """Tell the attachments of a turn. Called on the event loop; never waits."""
        if not edge.began:
            ended = TurnEnded(stream=stream, pts_us=edge.pts_us, duration_us=edge.duration_us)
            self._attached.tell(ended)
            return
        wanted = bool(self.loops)
        self._attached.tell(TurnStarted(stream=stream, pts_us=edge.pts_us, interrupts=wanted))
        if wanted:
            self._due.set()

    async def run(self) -> None:
        """Interrupt when it is due, until cancelled."""
        while True:
            await self._due.wait()
            self._due.clear()
            for loop in self.loops:
                try:
                    await self._cancel_speech(_COMMAND, loop)
                except CommandError as error:
                    logger.info("session %s: no barge-in: %s", self._state.session, error)


OnSpeech = Callable[[str, SpeechEdge], None]
"""`BargeIn.heard`."""
