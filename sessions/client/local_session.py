"""A session in this process, attached directly to the server session, with exact pixels."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from reverie.media import AudioCodec, Codec
from reverie.sessions.attachments.attachment import Attachment, AttachOptions, Role
from reverie.sessions.client.session import Session
from reverie.sessions.protocol.commands import AnyCommand, Playhead
from reverie.sessions.protocol.errors import CommandError, ErrorCode
from reverie.sessions.protocol.events import AnyEvent, Error, RequestAccepted
from reverie.sessions.protocol.session_stats import SessionStats
from reverie.sessions.protocol.session_view import SessionView
from reverie.sessions.runtime.server_session import ServerSession
from reverie.sessions.runtime.session_store import SessionStore


class LocalSession(Session):
    """Drives a server session, or watches it. The session waits for it while it streams."""

    def __init__(
        self,
        server_session: ServerSession,
        role: Role = Role.DRIVER,
        codec: Codec = Codec.RGB24,
        audio: AudioCodec | None = AudioCodec.PCM16,
        store: SessionStore | None = None,
    ) -> None:
        """Attach.

        Args:
            server_session: the session to attach to.
            role: what the client may do; only one drives.
            codec: of the pictures.
            audio: codec of the sound; None: no sound.
            store: where it can be forked; None: it cannot be.

        Raises:
            SessionEndedError: the session has ended.
            TooManyError: the limit of attachments is reached.
        """
        super().__init__()
        self._server_session, self._store = server_session, store
        self._attachment: Attachment = server_session.attach(
            role, AttachOptions(codec=codec, audio=audio, listening=False, patient=True)
        )

    @property
    def id(self) -> str:
        """The session's id."""
        return self._server_session.id

    @property
    def view(self) -> SessionView:
        """The session as it is now."""
        return self._server_session.view

    @asynccontextmanager
    async def fork(self, chunk: int | None = None) -> AsyncGenerator["LocalSession", None]:
        """Fork the session; see `Session.fork`."""
        if self._store is None or self._attachment.role is not Role.DRIVER:
            raise CommandError(ErrorCode.READ_ONLY, "only the driver can fork the session")
        self._tell_seen()
        credentials = await self._store.fork(self.id, chunk)
        async with LocalSession(credentials.session, store=self._store) as other:
            yield other

    async def stats(self) -> SessionStats:
        """Return how the session runs now."""
        return self._server_session.stats

    async def close(self) -> None:
        """End the session, and return when its place is free again; a viewer only leaves."""
        if self._attachment.role is Role.DRIVER:
            self._server_session.end("closed")
            await self._server_session.gone()
        else:
            self._attachment.detach()

    async def _send(self, command: AnyCommand) -> RequestAccepted | Error:
        return await self._attachment.request(command)

    def _tell(self, command: Playhead) -> None:
        self._attachment.submit(command)

    async def _next(self) -> AnyEvent:
        return await self._attachment.take()

    def _listen(self, listening: bool) -> None:
        self._attachment.listen(listening)
