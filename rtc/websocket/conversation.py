"""One attachment over one WebSocket: one task receives, one sends, one watches the line.

The socket is closed in one place, with the code of the reason. However it ends (the end of the
session, a close frame, a reset, a limit), the attachment is detached in `finally`.
"""

import asyncio

from reverie.rtc.command_reader import CommandReader
from reverie.rtc.metrics import Metrics
from reverie.rtc.options import ServerOptions
from reverie.rtc.websocket.socket_line import SocketLine
from reverie.rtc.websocket.socket_peer import SocketPeer
from reverie.rtc.wire.errors import PeerLeftError, first_of
from reverie.rtc.wire.framing import close_code, encode_event
from reverie.sessions.attachments.attachment import Attachment
from reverie.sessions.protocol.errors import AttachmentEndedError
from reverie.sessions.protocol.media_events import MediaChunk

MESSAGES_A_TURN = 16
"""Messages that a task handles before it yields to the event loop."""


class SocketConversation:
    """Sends an attachment's events over a socket, and receives its commands."""

    def __init__(
        self, peer: SocketPeer, attachment: Attachment, options: ServerOptions, metrics: Metrics
    ) -> None:
        self._peer = peer
        self._attachment = attachment
        self._metrics = metrics
        self._reader = CommandReader(attachment, options, metrics)
        self._line = SocketLine(peer.read, attachment)

    async def run(self) -> None:
        """Run until either side ends, then detach and close the socket."""
        reason, code, by = "internal_error", 1011, "server"
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._receive(), name="receive")
                tasks.create_task(self._send(), name="send")
                tasks.create_task(self._line.watch(), name="line")
        except* AttachmentEndedError as group:
            reason = first_of(group).reason
            code = close_code(reason)
        except* PeerLeftError as group:
            code, by = first_of(group).code, "peer"
        finally:
            self._attachment.detach()
            self._metrics.ended.labels(by if by == "peer" else reason).inc()
            await self._peer.close(code, reason)

    async def _receive(self) -> None:
        handled = 0
        while True:
            # A client that sends faster than it reads its answers is slowed down, not closed.
            await self._attachment.has_room()
            self._reader.read(await self._peer.receive())
            handled += 1
            if handled % MESSAGES_A_TURN == 0:
                await asyncio.sleep(0)

    async def _send(self) -> None:
        sent = 0
        while True:
            event = await self._attachment.take()
            message = encode_event(event)
            await self._peer.send(message)
            self._line.wrote(len(message), event.size_bytes if isinstance(event, MediaChunk) else 0)
            self._metrics.sent_bytes.inc(len(message))
            if isinstance(event, MediaChunk):
                self._metrics.frames.inc()
                self._metrics.dropped.inc(event.dropped)
            sent += 1
            if sent % MESSAGES_A_TURN == 0:
                await asyncio.sleep(0)
