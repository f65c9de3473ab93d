"""A WebSocket's bytes: uvicorn's sans-I/O protocol with the limits of this server.

uvicorn closes a socket by flushing what waits for it, which a client that does not read puts off
for ever, and after a message that is too large it closes at once, which makes the kernel throw
away the very close frame that says so. Here every closing ends by a deadline; what still comes
from a client that was told to go is read and dropped, so that the reason arrives.
"""

import asyncio
from asyncio.transports import BaseTransport
from typing import cast

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Close, Frame, Opcode

from reverie.rtc.http.connection import Deadline, options_of, tune
from reverie.rtc.wire.framing import CloseCode


class WebSocketConnection(WebSocketsSansIOProtocol):
    """One WebSocket, with limits on half messages, stalls, size and closing."""

    def connection_made(self, transport: BaseTransport) -> None:
        """Take over the socket from HTTP."""
        super().connection_made(transport)
        self._options = options_of(self.config)
        self.close_timeout = self._options.close_timeout_s
        self._cut = Deadline(self.loop)
        self._stall = Deadline(self.loop)
        self._message = Deadline(self.loop)
        self._failed = False
        tune(cast(asyncio.Transport, transport), self._options)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        for deadline in (self._cut, self._stall, self._message):
            deadline.stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on; a message that has begun has to end in time."""
        if self._failed:
            return
        super().data_received(data)
        if self._failed or not (self.conn.reader.buffer or self.frames):
            self._message.stop()
        else:
            limit = self._options.message_timeout_s
            self._message.start(limit, lambda: self._fail(CloseCode.TIMEOUT, "message_timeout"))

    def pause_writing(self) -> None:
        """Begin to count how long the client takes nothing."""
        super().pause_writing()
        limit = self._options.send_timeout_s
        self._stall.start(limit, lambda: self._fail(CloseCode.SLOW_VIEWER, "slow_viewer"))

    def resume_writing(self) -> None:
        """The client takes again."""
        self._stall.stop()
        super().resume_writing()

    def send_receive_event_to_app(self) -> None:
        """Hand a whole message on, also a text that is no UTF-8: its reader refuses it, typed.

        Bytes that cannot be decoded become lone surrogates, which no UTF-8 can hold.
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
        """Say why the client's bytes are not read on."""
        assert self.conn.close_sent is not None, "the parser failed without a reason"
        code, reason = self.conn.close_sent.code, self.conn.close_sent.reason
        self.conn.data_to_send()  # the library's own close frame, whose reason is not typed
        if code == CloseCode.TOO_LARGE:
            reason = f"too_large: a message holds at most {self._options.message_bytes} bytes"
        else:
            reason = f"bad_frame: {reason}" if reason else "bad_frame"
        self._fail(code, reason)

    async def send(self, message: ASGISendEvent) -> None:
        """Send for the application; a closing that it begins ends by a deadline."""
        await super().send(message)
        if self.close_sent:  # also an answer in place of the handshake is the end of it
            self.handshake_complete = True
        if self.close_timer is not None:
            self._cut.start(self.close_timeout, self.transport.abort)

    async def run_asgi(self) -> None:
        """Run the application; what it leaves open is closed, and cut by the deadline."""
        await super().run_asgi()
        self._cut_later()

    def keepalive_timeout(self) -> None:
        """End a peer that answers no ping."""
        super().keepalive_timeout()
        self._cut_later()

    def shutdown(self) -> None:
        """End what is still open when the server ends."""
        super().shutdown()
        self._cut_later()

    @property
    def is_idle(self) -> bool:
        """Never: somebody watches, or drives."""
        return False

    def make_way(self) -> None:
        """End it: there are too many connections, and others hold fewer."""
        self._fail(CloseCode.TRY_LATER, "too_many_connections")

    def _cut_later(self) -> None:
        if not self.disconnected or self._failed:
            self._cut.start(self.close_timeout, self.transport.abort)

    def _fail(self, code: int, reason: str) -> None:
        """Tell the application and the client why it is over, and drop what still comes."""
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
