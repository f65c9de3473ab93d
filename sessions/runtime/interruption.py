"""Going back: what was not seen is dropped everywhere, and nothing old comes after the word of it.

hold what comes -> ask the loop -> flush encoders and outboxes -> `session.interrupted`
                -> let go of what is new

A loop of text is not gone back in: what it was saying is broken off, which its last `text.delta`
says.
"""

import asyncio

from reverie.gpu_pool.wire.messages import Interrupt, Request
from reverie.sessions.protocol.commands import CutReason
from reverie.sessions.protocol.events import SessionInterrupted
from reverie.sessions.runtime.event_relay import EventRelay
from reverie.sessions.runtime.session_context import SessionContext


class Interruption:
    """Cuts the streams of one session, one cut after the other."""

    def __init__(self, context: SessionContext, event_relay: EventRelay) -> None:
        self._state = context.state
        self._controls = context.controls
        self._link = context.link
        self._event_relay = event_relay
        self._outputs = context.outputs
        self._attached = context.attached
        self._cutting = asyncio.Lock()  # commands queue, but who speaks does not ask by one

    async def interrupt(self, command: str, loop: str | None = None) -> None:
        """Drop what is unseen and go on from what the governing eyes have seen.

        Args:
            command: who asks.
            loop: the one to interrupt; None interrupts all.

        Raises:
            CommandError: there is no such loop, it refused, or could not be asked.
        """
        if loop is not None and not self._controls.loop(loop).has_media:
            await self._cancel_speech(loop)
            return
        seen = self._state.playheads.governing
        chunk = seen.chunk if seen.chunk >= 0 else None
        message = Interrupt(0, self._state.session, chunk, loop, seen.loop)
        await self.cut(command, "interrupt", message, loop)

    async def cut(
        self, command: str, reason: CutReason, message: Request, loop: str | None = None
    ) -> None:
        """Ask the loops to go back, and cut their streams there. If they refuse, nothing is lost.

        Args:
            command: who asks.
            reason: what for.
            message: what is asked.
            loop: the only one that goes back; None: all do.

        Raises:
            CommandError: it was refused, or could not be asked.
        """
        await self._link.connected()
        async with self._cutting:
            await self._cut(command, reason, message, loop)

    async def _cut(
        self, command: str, reason: CutReason, message: Request, loop: str | None
    ) -> None:
        from_us = 0
        self._event_relay.hold()
        try:
            done = await self._link.ask(message)
            from_us = done.pts_us
            seen_us = self._state.playheads.governing.pts_us
            back_to = {name: at for name, at in done.stands.items() if loop in (None, name)}
            newest = {name: self._state.newest_of(name) for name in back_to}
            self._state.playheads.cut(back_to, newest)
            for output in self._outputs:
                if loop in (None, output.stream.loop):
                    output.cut(from_us)
            if loop is None:
                for text in self._outputs.texts:
                    text.cut(done.utterances.get(text.stream.loop))
            loops = (loop,) if loop else tuple(each.name for each in self._controls.loops)
            self._attached.tell(
                SessionInterrupted(
                    command=command,
                    reason=reason,
                    chunk=done.chunk,
                    seen_us=seen_us,
                    next_us=from_us,
                    loops=loops,
                )
            )
        finally:
            self._event_relay.let_go(from_us, loop)

    async def _cancel_speech(self, loop: str) -> None:
        """Break off what a loop of text is saying."""
        await self._link.connected()
        async with self._cutting:
            self._event_relay.hold()
            try:
                done = await self._link.ask(Interrupt(0, self._state.session, None, loop))
                for text in self._outputs.texts:
                    if text.stream.loop == loop:
                        text.cut(done.utterances.get(loop))
            finally:
                self._event_relay.let_go()
