"""A TCP connection before, and unless, it becomes a WebSocket: HTTP/1.1 with deadlines.

uvicorn waits for ever for a client that connects and says nothing, or stops within a request's
head, and for one that asks for a page and does not take it. Here each of those has a limit.
"""

import asyncio
import json
import socket
from http import HTTPStatus

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from reverie.rtc.connection_shares import has_room
from reverie.rtc.http.json_bodies import error_body
from reverie.rtc.options import ServerOptions

MAX_HEAD_BYTES = 2**16
RETRY_S = 5.0
"""When to come again to a server that has as many connections as it may have."""


class EdgeConfig(uvicorn.Config):
    """uvicorn's settings, and ours beside them for the protocol classes to find."""

    def __init__(self, options: ServerOptions, **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]
        self.options = options


def options_of(config: uvicorn.Config) -> ServerOptions:
    """Return the server's options out of what uvicorn hands to a protocol."""
    if not isinstance(config, EdgeConfig):
        raise TypeError("this protocol needs an EdgeConfig")
    return config.options


def tune(transport: asyncio.Transport, options: ServerOptions) -> None:
    """Have what is sent leave at once, and keep what waits short, here and in the kernel.

    A receipt is a small write with a picture behind it. Nagle's rule holds the picture back until
    the receipt is acknowledged, which a client puts off by up to 40 ms. asyncio sets TCP_NODELAY
    only on sockets that were made with the number of TCP, and ours may have come in any way.
    """
    transport.set_write_buffer_limits(high=options.send_buffer_bytes)
    sock = transport.get_extra_info("socket")
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, options.unsent_bytes)


class Deadline:
    """One timer that is on or off; calling `start` while it is on changes nothing."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None

    def start(self, after_s: float, then: object) -> None:
        """Call `then` after a time, unless `stop` comes first."""
        if self._timer is None and callable(then):
            self._timer = self._loop.call_later(after_s, then)

    def stop(self) -> None:
        """Forget it; harmless when the timer is off or has fired."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class UnambiguousRequests(h11.Connection):
    """Reads requests whose length can be read in one way only.

    A proxy may go by `Content-Length` where h11 goes by `Transfer-Encoding`; what one of them
    takes for a body is then a request to the other.
    """

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return what comes next.

        Raises:
            h11.RemoteProtocolError: it is no HTTP, or has two lengths.
        """
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            if {b"content-length", b"transfer-encoding"} <= names:
                raise h11.RemoteProtocolError("both Content-Length and Transfer-Encoding")
        return event


class HttpConnection(H11Protocol):
    """uvicorn's HTTP/1.1 protocol with limits on silence, stalls and the number of sockets."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.conn = UnambiguousRequests(h11.SERVER, MAX_HEAD_BYTES)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request; turn the socket away when there are too many."""
        super().connection_made(transport)
        self._options = options_of(self.config)
        self._late = Deadline(self.loop)
        self._stall = Deadline(self.loop)
        tune(transport, self._options)
        limit = self._options.connections
        if len(self.connections) > limit and not has_room(self, self.connections, self._options):
            self.make_way()
        else:
            self._late.start(self._options.request_timeout_s, self._client_is_late)

    def data_received(self, data: bytes) -> None:
        """Read on; a head that has begun has to end in time."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.transport.get_protocol() is not self:
            self._late.stop()
        elif self._waits_for_client():
            self._late.start(self._options.request_timeout_s, self._client_is_late)
        else:
            self._late.stop()

    def pause_writing(self) -> None:
        """Begin to count how long the client takes nothing."""
        super().pause_writing()
        self._stall.start(self._options.send_timeout_s, self.transport.abort)

    def resume_writing(self) -> None:
        """The client takes again."""
        self._stall.stop()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        self._late.stop()
        self._stall.stop()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, in the form that all errors have."""
        self._turn_away(400, "bad_request", msg)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is asked on it."""
        return self.conn.our_state is h11.IDLE

    def make_way(self) -> None:
        """End it: there are too many."""
        message = f"at most {self._options.connections} sockets may be open (connections)"
        if self.is_idle:
            self._turn_away(503, "too_many_connections", message, retry_after_s=RETRY_S)
        else:
            self.transport.abort()

    def _waits_for_client(self) -> bool:
        """Tell whether half a head has come, or the rest of a body that nobody reads."""
        if self.conn.their_state is h11.IDLE:
            return bool(self.conn.trailing_data[0])
        return self.conn.their_state is h11.SEND_BODY and self.cycle.response_complete

    def _client_is_late(self) -> None:
        limit = self._options.request_timeout_s
        if self.conn.our_state is h11.IDLE:
            message = f"no whole request came within {limit:g} s (request_timeout_s)"
            self._turn_away(408, "request_timeout", message)
        else:
            self.transport.abort()

    def _turn_away(
        self, status: int, code: str, message: str, retry_after_s: float | None = None
    ) -> None:
        if self.transport.is_closing():
            return
        body = json.dumps(error_body(code, message, retry_after_s=retry_after_s)).encode()
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
