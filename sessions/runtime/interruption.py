"""Cuts: unseen output is dropped everywhere, and no old frame follows `session.interrupted`.

hold notifications -> ask the loop -> flush encoders and outboxes -> `session.interrupted`
                   -> relay what is new

A loop of text does not return to an earlier state: its utterance is broken off, and its last
`text.delta` says so.
"""

import asyncio

from reverie.engine.inputs import ControlInput
from reverie.engine.lead_time import LineTiming
from reverie.gpu_pool.wire.session_messages import ActNow, Interrupt, Request
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
        self._cutting = asyncio.Lock()  # commands are queued, but a barge-in is not

    async def interrupt(self, command: str, loop: str | None = None) -> None:
        """Drop what is unseen and continue from the playhead that counts.

        Args:
            command: the id of the command.
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

    async def act_now(
        self, command: str, inputs: tuple[ControlInput, ...], line: LineTiming | None
    ) -> None:
        """Send controls that act before what would still be unseen when their frame comes.

        Args:
            command: the id of the command.
            inputs: its controls.
            line: to the client that sends it; None: it is in this process.

        Raises:
            CommandError: the loops could not be asked; what is unseen stays.
        """
        seen = self._state.playheads.governing
        chunk = seen.chunk if seen.chunk >= 0 else None
        ahead_us = line.round_trip_us if line is not None else 0
        message = ActNow(0, self._state.session, inputs, chunk, seen.loop, ahead_us)
        await self.cut(command, "act", message)

    async def cut(
        self, command: str, reason: CutReason, message: Request, loop: str | None = None
    ) -> None:
        """Have the loops return to an earlier state, and cut their streams there.

        If they refuse, nothing is dropped.

        Args:
            command: the id of the command.
            reason: the command's type.
            message: the request to the loops.
            loop: the only loop that it is for; None: for all.

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
            if isinstance(message, ActNow) and not done.took_back:
                return
            from_us = done.pts_us
            seen_us = self._state.playheads.governing.pts_us
            back_to = {name: at for name, at in done.state_chunks.items() if loop in (None, name)}
            newest = {name: self._state.newest_of(name) for name in back_to}
            self._state.playheads.cut(back_to, newest)
            for output in self._outputs:
                if loop in (None, output.stream.loop):
                    output.cut(from_us)
            loops = (loop,) if loop else tuple(each.name for each in self._controls.loops)
            if reason == "act":
                loops = tuple(back_to)
            elif loop is None:
                for text in self._outputs.texts:
                    text.cut(done.utterances.get(text.stream.loop))
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
        """Break off the utterance of a loop of text."""
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
