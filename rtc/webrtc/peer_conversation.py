"""One attachment over one WebRTC peer, as `SocketConversation` is over a WebSocket.

Media are sent as RTP; other events and all commands use the `events` channel, if there is one.
"""

import asyncio

from reverie.gpu_pool.wire.shares import Accounts
from reverie.rtc.app_context import AppContext
from reverie.rtc.command_reader import CommandReader
from reverie.rtc.webrtc.data_channels import EventsChannel, PeerChannels
from reverie.rtc.webrtc.media_out import MediaOut
from reverie.rtc.webrtc.untold_chunks import UntoldChunks
from reverie.rtc.wire.errors import PeerEndedError
from reverie.rtc.wire.framing import CloseCode, encode_text
from reverie.sessions import (
    Attachment,
    AttachOptions,
    Role,
    ServerSession,
    SessionEndedError,
    TooManyError,
)
from reverie.sessions.protocol.events import AnyEvent
from reverie.sessions.protocol.media_events import MediaChunk


class PeerConversation:
    """Sends an attachment's events to a peer, and receives its commands."""

    def __init__(
        self,
        context: AppContext,
        server_session: ServerSession,
        media: MediaOut,
        channels: PeerChannels,
        accounts: Accounts,
    ) -> None:
        """Prepare; `run` attaches, and the attachment counts for `accounts`."""
        self._context = context
        self._server_session = server_session
        self._media = media
        self._channels = channels
        self._accounts = accounts
        self.attachment: Attachment | None = None
        self._untold = UntoldChunks()

    async def run(self, role: Role) -> None:
        """Attach, and run until either side ends it; then detach.

        Raises:
            PeerEndedError: the session refuses the attachment, or the peer reads nothing.
            AttachmentEndedError: the attachment or the session has ended.
            PeerLeftError: the channel is closed.
        """
        attachment = self.attachment = self._attach(role)
        events = self._channels.events
        attached = self._context.metrics.attached.labels(attachment.role.value)
        attached.inc()
        try:
            self._media.begin(self._server_session, attachment, silent=events is None)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._send(attachment, events), name="send")
                if events is not None:
                    tasks.create_task(self._receive(attachment, events), name="receive")
        finally:
            attached.dec()
            attachment.detach()

    def _attach(self, role: Role) -> Attachment:
        options = AttachOptions(
            codec=self._media.codec,
            audio=self._media.audio,
            message_bytes=self._context.options.message_bytes,
            commands_per_s=self._context.options.commands_per_s,
            accounts=self._accounts,
            in_time=True,
        )
        try:
            return self._server_session.attach(role, options)
        except SessionEndedError as error:
            reason = f"no_such_session: {error.reason}"
            raise PeerEndedError(CloseCode.NO_SUCH_SESSION, reason, str(error)) from None
        except TooManyError as error:
            raise PeerEndedError(CloseCode.TOO_MANY, f"too_many_{error.what}", str(error)) from None

    async def _receive(self, attachment: Attachment, events: EventsChannel) -> None:
        reader = CommandReader(attachment, self._context.options, self._context.metrics)
        reader.seen = self._media.seen
        self._channels.on_action(lambda message: reader.read(message, quiet=True))
        while True:
            await attachment.has_room()
            reader.read(await events.receive())

    async def _send(self, attachment: Attachment, events: EventsChannel | None) -> None:
        while True:
            event = await self._media.pass_on(await attachment.take())
            if isinstance(event, MediaChunk) and events is not None:
                event = self._untold.passed(
                    event, attachment.outbox.now_us(), behind=events.behind, lossy=self._media.lossy
                )
            if event is not None and events is not None:
                await self._tell(event, events)

    async def _tell(self, event: AnyEvent, events: EventsChannel) -> None:
        limit_s = self._context.options.send_timeout_s
        text = encode_text(event)
        try:
            async with asyncio.timeout(limit_s):
                await events.send(text)
        except TimeoutError:
            message = f"the client read nothing for {limit_s:g} s (send_timeout_s)"
            raise PeerEndedError(CloseCode.SLOW_VIEWER, "slow_viewer", message) from None
        self._context.metrics.sent_bytes.inc(len(text))
