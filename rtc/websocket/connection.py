"""A WebSocket's bytes: uvicorn's sans-I/O protocol with the limits of this server.

uvicorn flushes a socket before it closes it, which never ends when the client does not read. After
a message that is too large it closes at once, and the kernel then discards the close frame with the
reason. Here every close has a deadline; input from a client that is being closed is read and
dropped, so that the reason arrives.
"""

import asyncio
from asyncio.transports import BaseTransport
from typing import cast

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Close, Frame, Opcode

from reverie.rtc.http.connection import Deadline, options_of, tune
from reverie.rtc.websocket.round_trips import ROUND_TRIPS, RoundTrips
from reverie.rtc.websocket.socket_reading import SocketReading, read_socket
from reverie.rtc.wire.framing import CloseCode

BACKLOG = "reverie.backlog"
"""The ASGI extension whose `read` says what waits to be sent."""


class WebSocketConnection(WebSocketsSansIOProtocol):
    """One WebSocket, with limits on incomplete messages, stalls, size and closing."""

    def connection_made(self, transport: BaseTransport) -> None:
        """Take over the socket from HTTP."""
        super().connection_made(transport)
        self._options = options_of(self.config)
        self.close_timeout = self._options.close_timeout_s
        self._abort = Deadline(self.loop)
        self._stall = Deadline(self.loop)
        self._message = Deadline(self.loop)
        self._failed = False
        self.round_trips = RoundTrips()
        tune(cast(asyncio.Transport, transport), self._options)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        for deadline in (self._abort, self._stall, self._message):
            deadline.stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read; a message that has begun must end in time."""
        if self._failed:
            return
        super().data_received(data)
        if self._failed or not (self.conn.reader.buffer or self.frames):
            self._message.stop()
        else:
            limit = self._options.message_timeout_s
            self._message.start(limit, lambda: self._fail(CloseCode.TIMEOUT, "message_timeout"))

    def pause_writing(self) -> None:
        """Start the timer of a client that reads nothing."""
        super().pause_writing()
        limit = self._options.send_timeout_s
        self._stall.start(limit, lambda: self._fail(CloseCode.SLOW_VIEWER, "slow_viewer"))

    def resume_writing(self) -> None:
        """Stop the timer: the client reads again."""
        self._stall.stop()
        super().resume_writing()

    def send_receive_event_to_app(self) -> None:
        """Pass a complete message on, even a text that is no UTF-8, which its reader refuses.

        Bytes that cannot be decoded become lone surrogates, which valid UTF-8 never holds.
        """
        if self.curr_msg_data_type != "text" or self.close_sent:
            super().send_receive_event_to_app()
            return
        text = b"".join(self.frames).decode(errors="surrogateescape")
        self.frames = []
        self.queue.put_nowait({"type": "websocket.receive", "text": text})
        if not self.read_paused:
            self.read_paused = True
            self.transport.pause_reading()

    def handle_parser_exception(self) -> None:
        """Close with the reason why the client's bytes cannot be parsed."""
        assert self.conn.close_sent is not None, "the parser failed without a reason"
        code, reason = self.conn.close_sent.code, self.conn.close_sent.reason
        self.conn.data_to_send()  # the library's own close frame, whose reason is not typed
        if code == CloseCode.TOO_LARGE:
            reason = f"too_large: a message holds at most {self._options.message_bytes} bytes"
        else:
            reason = f"bad_frame: {reason}" if reason else "bad_frame"
        self._fail(code, reason)

    def read(self) -> SocketReading:
        """Return what waits to be sent to the client."""
        return read_socket(self.transport)

    async def send(self, message: ASGISendEvent) -> None:
        """Send for the application; a close that it begins has a deadline."""
        if message["type"] == "websocket.send" and not self.close_sent:
            await self.writable.wait()
            self._ping()
        await super().send(message)
        if self.close_sent:  # a refusal ends the handshake as well
            self.handshake_complete = True
        if self.close_timer is not None:
            self._abort.start(self.close_timeout, self.transport.abort)

    async def run_asgi(self) -> None:
        """Run the application; a socket that it leaves open is closed by the deadline."""
        self.scope["extensions"] = {
            **(self.scope.get("extensions") or {}),
            BACKLOG: {"read": self.read},
            ROUND_TRIPS: {"measured": self.round_trips},
        }
        await super().run_asgi()
        self._abort_later()

    def keepalive_timeout(self) -> None:
        """Close a client that answers no ping."""
        super().keepalive_timeout()
        self._abort_later()

    def shutdown(self) -> None:
        """Close the socket when the server ends."""
        super().shutdown()
        self._abort_later()

    def handle_pong(self, event: Frame) -> None:
        """Tell how long a ping took; the pongs of the keepalive are uvicorn's."""
        if not self.round_trips.answered(bytes(event.data), self.loop.time()):
            super().handle_pong(event)

    @property
    def is_idle(self) -> bool:
        """Never, because a client is attached."""
        return False

    def evict(self) -> None:
        """Close it, because there are too many connections and other addresses hold fewer."""
        self._fail(CloseCode.TRY_LATER, "too_many_connections")

    def _ping(self) -> None:
        """Ask for an answer, a few times a second, while something is sent."""
        if self.disconnected or self.close_sent or not self.handshake_complete:
            return
        payload = self.round_trips.due(self.loop.time())
        if payload is not None:
            self.transport.write(Frame(Opcode.PING, payload).serialize(mask=False))

    def _abort_later(self) -> None:
        if not self.disconnected or self._failed:
            self._abort.start(self.close_timeout, self.transport.abort)

    def _fail(self, code: int, reason: str) -> None:
        """Tell the application and the client the reason, and drop further input."""
        if self._failed or self.close_sent or self.transport.is_closing():
            return
        self._failed = True
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        if self.handshake_complete:
            close = Frame(Opcode.CLOSE, Close(code, reason).serialize())
            self.transport.write(close.serialize(mask=False))
        self.close_sent = self.disconnected = True
        self.stop_keepalive()
        self._stall.stop()
        self._message.stop()
        self.writable.set()
        self.transport.resume_reading()
        self.transport.write_eof()
        self.close_timer = self.loop.call_later(self.close_timeout, self.transport.abort)
