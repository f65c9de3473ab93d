"""Going back: what was not seen is dropped everywhere, and nothing old comes after the word of it.

hold what comes -> ask the loop -> flush encoders and outboxes -> `session.interrupted`
                -> let go of what is new
"""

from typing import Literal

from reverie.gpu_pool.messages import Asked, Interrupt
from reverie.sessions.events import SessionInterrupted
from reverie.sessions.parts import Parts
from reverie.sessions.relay import Relay

CutReason = Literal["interrupt", "rewind", "reset", "restore"]


class Cutter:
    """Cuts the streams of one session. Cuts come one after the other."""

    def __init__(self, parts: Parts, relay: Relay) -> None:
        self._state = parts.state
        self._link = parts.link
        self._relay = relay
        self._outputs = parts.outputs
        self._audience = parts.audience

    async def interrupt(self, command: str) -> None:
        """Drop what is unseen and go on from what the governing eyes have seen.

        Raises:
            CommandError: the loop refused, or could not be asked.
        """
        seen = self._state.playheads.governing.chunk
        message = Interrupt(0, self._state.session, seen if seen >= 0 else None)
        await self.cut(command, "interrupt", message)

    async def cut(self, command: str, reason: CutReason, message: Asked) -> None:
        """Ask the loop to go back, and cut the streams there. If it refuses, nothing is lost.

        Raises:
            CommandError: the loop refused, or could not be asked.
        """
        from_us = 0
        await self._link.connected()
        self._relay.hold()
        try:
            done = await self._link.ask(message)
            from_us = done.pts_us
            seen_us = self._state.playheads.governing.pts_us
            self._state.playheads.cut(done.chunk, self._state.chunk)
            for output in self._outputs:
                output.cut(from_us)
            self._audience.tell(
                SessionInterrupted(
                    command=command,
                    reason=reason,
                    chunk=done.chunk,
                    seen_us=seen_us,
                    next_us=from_us,
                )
            )
        finally:
            self._relay.let_go(from_us)
