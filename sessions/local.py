"""A session in this process: straight to the hosted session, with exact pixels."""

from reverie.media import AudioCodec, Codec
from reverie.sessions.attachment import Attachment, AttachOptions, Role
from reverie.sessions.commands import AnyCommand, Playhead
from reverie.sessions.events import AnyEvent, Error, RequestAccepted, SessionView
from reverie.sessions.hosted import HostedSession
from reverie.sessions.session import Session


class LocalSession(Session):
    """Drives a hosted session, or watches it. It is waited for as long as it streams."""

    def __init__(
        self,
        hosted: HostedSession,
        role: Role = Role.DRIVER,
        codec: Codec = Codec.RGB24,
        audio: AudioCodec | None = AudioCodec.PCM16,
    ) -> None:
        """Attach.

        Raises:
            SessionEndedError: the session is over.
            TooManyError: as many are attached as may be.
        """
        super().__init__()
        self._hosted = hosted
        self._attachment: Attachment = hosted.attach(
            role, AttachOptions(codec=codec, audio=audio, listening=False, patient=True)
        )

    @property
    def id(self) -> str:
        """The session's id."""
        return self._hosted.id

    @property
    def view(self) -> SessionView:
        """The session as it is now."""
        return self._hosted.view

    async def close(self) -> None:
        """End the session, and return when its place is free again; a viewer only leaves."""
        if self._attachment.role is Role.DRIVER:
            self._hosted.end("closed")
            await self._hosted.gone()
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
