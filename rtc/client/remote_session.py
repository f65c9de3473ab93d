"""A session on a server, with the interface of one in this process."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from types import TracebackType

from reverie.media import MonotonicClock
from reverie.rtc.client.remote_inbox import RemoteInbox
from reverie.rtc.client.remote_link import LinkEnding, LinkOptions, RemoteLink
from reverie.rtc.wire.errors import ConnectionLostError
from reverie.rtc.wire.framing import CloseCode, encode_command
from reverie.sessions import CommandError, Session, SessionEndedError, SessionError
from reverie.sessions.protocol.commands import AnyCommand, Close, Playhead
from reverie.sessions.protocol.events import (
    AnyEvent,
    Error,
    RequestAccepted,
    SessionAttached,
    SessionClosed,
    SessionUpdated,
)
from reverie.sessions.protocol.session_stats import SessionStats
from reverie.sessions.protocol.session_view import SessionView

CLOSE_S = 5.0

ForkRemote = Callable[[int | None], "AbstractAsyncContextManager[RemoteSession]"]


class RemoteSession(Session):
    """Drives or watches a session over a WebSocket. Made by `connect`.

    After a drop of the connection the stream has a second `session.attached`. A command that was
    under way raises `ConnectionLostError`: whether it was executed is unknown.

    Attributes:
        token: lets another client drive the session.
    """

    def __init__(
        self,
        session: str,
        options: LinkOptions,
        owned: bool,
        fork: ForkRemote | None = None,
        stats: Callable[[], Awaitable[SessionStats]] | None = None,
    ) -> None:
        """Prepare; `run` attaches.

        Args:
            session: its id.
            options: how to attach to it.
            owned: whether leaving the `async with` block ends the session, or only the attachment.
            fork: opens a second future of it, after a chunk.
            stats: asks the server how it runs.
        """
        super().__init__()
        self.token = options.token
        self._id = session
        self._owned = owned
        self._fork, self._stats = fork, stats
        self._link = RemoteLink(options, self._take, self._dropped)
        self._view: SessionView | None = None
        self._message_bytes = 0  # the longest message that the server accepts, once known
        self._attached = asyncio.Event()
        self._over = asyncio.Event()
        self._ending: LinkEnding | None = None
        self._answers: dict[str, asyncio.Future[RequestAccepted | Error]] = {}
        self._inbox = RemoteInbox(MonotonicClock().now_us)
        self._outgoing: deque[Playhead] = deque(maxlen=1)  # a newer playhead replaces an older one
        self._seen = asyncio.Event()

    @property
    def id(self) -> str:
        """The session's id."""
        return self._id

    @property
    def view(self) -> SessionView:
        """The newest state of the session that the server sent."""
        if self._view is None:
            raise SessionError("not attached yet")
        return self._view

    def fork(self, chunk: int | None = None) -> "AbstractAsyncContextManager[RemoteSession]":
        """Open a second future; see `Session.fork`."""
        if self._fork is None:
            raise SessionError("this session cannot be forked from here")
        self._tell_seen()
        return self._fork(self._seen_chunk if chunk is None else chunk)

    async def stats(self) -> SessionStats:
        """Ask the server how the session runs now; see `Session.stats`."""
        if self._stats is None:
            raise SessionError("the server of this session cannot be asked from here")
        return await self._stats()

    async def run(self) -> None:
        """Stay attached until the attachment ends; the task of `connect`."""
        try:
            async with asyncio.TaskGroup() as tasks:
                telling = tasks.create_task(self._tell_playheads(), name="playheads")
                self._ending = await self._link.run()
                telling.cancel()
        finally:
            self._end()

    async def attached(self) -> None:
        """Return once the server has admitted this client.

        Raises:
            SessionError: it has refused.
        """
        await self._attached.wait()
        if self._view is None:
            raise self._why_over()

    async def close(self) -> None:
        """End the session, and return when it has ended; a viewer only detaches."""
        if self._over.is_set():
            return
        with suppress(SessionError, TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                if isinstance(await self._send(Close(id=self._new_id())), RequestAccepted):
                    await self._over.wait()
        self._end()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._owned:
            await self.close()
        self._end()

    async def _send(self, command: AnyCommand) -> RequestAccepted | Error:
        if self._over.is_set():
            raise self._why_over()
        answer: asyncio.Future[RequestAccepted | Error] = asyncio.get_running_loop().create_future()
        self._answers[command.id] = answer
        try:
            message = self._fitting(command)
            await self._send_playhead()  # what a control may take back begins where that ends
            await self._link.send(message)
            return await answer
        finally:
            self._answers.pop(command.id, None)

    def _fitting(self, command: AnyCommand) -> str | bytes:
        """Return a command as a message that the server accepts: a longer one ends the socket."""
        text = encode_command(command)
        size_bytes = len(text.encode() if isinstance(text, str) else text)
        if self._message_bytes and size_bytes > self._message_bytes:
            message = f"a message holds at most {self._message_bytes} bytes (message_bytes)"
            raise CommandError("too_large", message, command=command.id)
        return text

    def _tell(self, command: Playhead) -> None:
        self._outgoing.append(command)
        self._seen.set()

    async def _tell_playheads(self) -> None:
        while True:
            await self._seen.wait()
            self._seen.clear()
            with suppress(ConnectionLostError):
                await self._send_playhead()

    async def _send_playhead(self) -> None:
        if self._outgoing:
            await self._link.send(encode_command(self._outgoing.popleft()))

    def _waited(self) -> int:
        return self._inbox.waited_us

    async def _next(self) -> AnyEvent:
        return await self._inbox.take()

    def _take(self, event: AnyEvent) -> None:
        match event:
            case RequestAccepted(command=command) | Error(command=str() as command):
                answer = self._answers.get(command)
                if answer is not None and not answer.done():
                    answer.set_result(event)
                    return
            case SessionAttached(view=view, limits=limits):
                self._view, self._message_bytes = view, limits.message_bytes
                if self._attached.is_set():
                    self._tell_connection(True)
                self._attached.set()
            case SessionUpdated(view=view):
                self._view = view
        self._inbox.put(event)

    def _tell_connection(self, there: bool) -> None:
        if self.connection_changed is not None:
            self.connection_changed(there)

    def _dropped(self) -> None:
        self._tell_connection(False)
        for answer in self._answers.values():
            if not answer.done():
                text = "the connection broke before the answer arrived"
                answer.set_exception(ConnectionLostError(text))

    def _end(self) -> None:
        if self._over.is_set():
            return
        self._over.set()
        self._attached.set()
        if self._ending is not None and not isinstance(self._inbox.newest, SessionClosed | Error):
            told = Error(code=self._ending.reason, message=self._ending.message)
            self._inbox.put(told.model_copy(update={"session": self._id}))
        self._inbox.end(self._why)
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(self._why_over())

    @property
    def _why(self) -> str:
        return self._ending.reason if self._ending is not None else "detached"

    def _why_over(self) -> SessionError:
        ending = self._ending or LinkEnding(CloseCode.OVER, self._why)
        if ending.reason in ("unreachable", "connection_lost"):
            return ConnectionLostError(ending.message)
        return SessionEndedError(ending.reason, ending.message)
