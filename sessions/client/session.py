"""A session as a program uses it: the same in this process and over the network.

    async with engine.session(model="pocket", prompt="a frozen lake land") as session:
        await session.push_action({"move": "left"}, edge="press")
        async for event in session.stream():
            if event.type == "media.chunk":
                show(session.picture(event))

Subclasses define how a command gets to the session and how events come from it.
"""

from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from itertools import count
from time import monotonic_ns
from types import TracebackType
from typing import Self
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from reverie.sessions.client.control_latency import ControlLatency, LatencyMeter
from reverie.sessions.client.decode import to_picture, to_samples
from reverie.sessions.client.event_stream import EventStream
from reverie.sessions.client.session_commands import SessionCommands
from reverie.sessions.protocol.commands import AnyCommand, Playhead
from reverie.sessions.protocol.errors import CommandError, NotPixelsError, NotSamplesError
from reverie.sessions.protocol.events import AnyEvent, Error, RequestAccepted
from reverie.sessions.protocol.media_events import MediaChunk, MediaInit
from reverie.sessions.protocol.parsing import parse_command
from reverie.sessions.protocol.session_stats import SessionStats
from reverie.sessions.protocol.session_view import SessionView

CONTROLS = frozenset({"push_text", "push_action", "update"})


class Session(SessionCommands):
    """One client's session with a model.

    Every command returns its id once it is certain to act, and raises `CommandError` when it was
    refused; then nothing has changed. A control's receipt comes as an event that names the id.

    Attributes:
        connection_changed: called with False when the connection to the session is lost, and with
            True once it is back; never for a session in this process. It must neither wait nor
            raise.
    """

    connection_changed: Callable[[bool], None] | None

    def __init__(self) -> None:
        self.connection_changed = None
        self._numbers = count()
        self._inits: dict[str, MediaInit] = {}  # the newest of each stream
        self._shown: MediaChunk | None = None  # ends a chunk that was not yet reported as seen
        self._seen_chunk: int | None = None
        self._waited_us: int | None = None  # how long the first frame of the newest chunk had
        self._streaming: ref[EventStream] | None = None  # the newest
        self._meter = LatencyMeter()

    # --- the session ---

    @property
    @abstractmethod
    def id(self) -> str:
        """The session's id."""

    @property
    @abstractmethod
    def view(self) -> SessionView:
        """The session, as of the last event about it."""

    @abstractmethod
    def fork(self, chunk: int | None = None) -> "AbstractAsyncContextManager[Session]":
        """Fork: open another session that continues from what was seen of this one.

            async with session.fork() as other: ...

        It has the prompt, the parameters and the world, no held keys and no snapshots, and it ends
        with the block. Both continue alike until they get different commands.

        Args:
            chunk: continue from this chunk, which must still be kept; None is the newest that was
                seen.

        Raises:
            BadRequestError: the program cannot be forked, or the chunk is no longer kept.
            SessionError: there is no place, this client only watches, or this session has ended.
        """

    @abstractmethod
    async def stats(self) -> SessionStats:
        """Return how the session runs now: its lead, and the line to each client.

        Raises:
            SessionError: the server cannot be asked.
        """

    def latency(self) -> ControlLatency | None:
        """Return how long controls took from being sent until their first frame came out.

        None before the first one has, and where nothing takes the events of `stream`.
        """
        return self._meter.latency

    @abstractmethod
    async def close(self) -> None:
        """End the session, and return when it has ended; idempotent."""

    # --- events ---

    def stream(self) -> EventStream:
        """Return the events from now on; an earlier stream ends.

        Asking for the next event after the last frame of a chunk, or sending a command then,
        reports the chunk as seen: the generation keeps pace with the iteration, and stops with it.
        The last event says why it is the last.
        """
        if self._streaming is not None and (before := self._streaming()) is not None:
            before.close()
        stream = EventStream(
            self._next, shown=self._note, back=self._tell_seen, left=lambda: self._listen(False)
        )
        self._listen(True)
        self._streaming = ref(stream)
        return stream

    def picture(self, chunk: MediaChunk) -> NDArray[np.uint8]:
        """Return the frame [H, W, 3] of a chunk that came out of `stream`.

        Raises:
            NotPixelsError: it needs a decoder, because its codec is not `rgb24`.
        """
        if chunk.stream not in self._inits:
            raise NotPixelsError(f"no media.init has come for stream {chunk.stream!r}")
        return to_picture(chunk, self._inits[chunk.stream])

    def samples(self, chunk: MediaChunk) -> NDArray[np.int16]:
        """Return the sound [N, C] of a chunk that came out of `stream`.

        Raises:
            NotSamplesError: it needs a decoder, because its codec is not `pcm16`.
        """
        if chunk.stream not in self._inits:
            raise NotSamplesError(f"no media.init has come for stream {chunk.stream!r}")
        return to_samples(chunk, self._inits[chunk.stream])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    # --- for subclasses ---

    @abstractmethod
    async def _send(self, command: AnyCommand) -> RequestAccepted | Error:
        """Send a command and return its answer.

        Raises:
            SessionError: it cannot be answered: the session or the connection has ended.
        """

    @abstractmethod
    def _tell(self, command: Playhead) -> None:
        """Send a command that needs no answer. Never waits, never raises."""

    @abstractmethod
    async def _next(self) -> AnyEvent:
        """Wait for the next event that is not an answer. Safe to cancel: then nothing is lost.

        Raises:
            AttachmentEndedError: there are no more.
        """

    def _listen(self, listening: bool) -> None:
        """Note whether the program takes events from now on. Never waits, never raises."""

    def _waited(self) -> int | None:
        """Return how long the event that was taken last had waited for it; None: unknown."""
        return None

    def _note(self, event: AnyEvent) -> None:
        if isinstance(event, MediaInit):
            self._inits[event.stream] = event
        if isinstance(event, MediaChunk) and event.frame == 0:
            self._waited_us = self._waited()
        if isinstance(event, MediaChunk) and event.last:
            self._shown = event
        self._meter.note(event)
        if isinstance(event, MediaChunk) and self._is_seen(event.stream):
            self._meter.shown(event.pts_us + event.duration_us, _now_us())

    def _is_seen(self, stream: str) -> bool:
        """Tell whether a stream is what shows controls: pictures, or sound where there are none."""
        kinds = {init.kind for init in self._inits.values()}
        init = self._inits.get(stream)
        return init is not None and (init.kind == "video" or "video" not in kinds)

    def _new_id(self) -> str:
        return f"c{next(self._numbers)}"

    def _tell_seen(self) -> None:
        shown, self._shown = self._shown, None
        if shown is not None:
            self._seen_chunk = shown.chunk
            self._tell(
                Playhead(
                    id=self._new_id(),
                    chunk=shown.chunk,
                    pts_us=shown.pts_us,
                    waited_us=self._waited_us,
                )
            )

    async def _command(self, type: str, **fields: object) -> str:
        self._tell_seen()
        return await self._ask(type, **fields)

    async def _ask(self, type: str, **fields: object) -> str:
        command = parse_command({"type": type, "id": self._new_id(), **fields})
        if type in CONTROLS:
            self._meter.sent(command.id, _now_us())
        answer = await self._send(command)
        if isinstance(answer, Error):
            self._meter.refused(command.id)
            raise CommandError(
                answer.code,
                answer.message,
                field=answer.field,
                command=answer.command,
                retry_after_s=answer.retry_after_s,
            )
        return command.id


def _now_us() -> int:
    return monotonic_ns() // 1000
