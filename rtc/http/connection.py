"""A TCP connection unless it becomes a WebSocket: HTTP/1.1 with deadlines.

uvicorn waits for ever for a client that connects and sends nothing, stops within a request's head,
or asks for a page and does not read it. Here each of those has a limit.
"""

import asyncio
import json
import socket
from collections.abc import Iterable
from http import HTTPStatus
from typing import Protocol, runtime_checkable

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from reverie.gpu_pool.wire.shares import Accounts, held_by, who_gives_way
from reverie.rtc.addresses import Addresses
from reverie.rtc.http.json_bodies import error_json
from reverie.rtc.options import ServerOptions
from reverie.sessions.protocol.errors import Refusal

MAX_HEAD_BYTES = 2**16
RETRY_S = 5.0
"""When to try again while all connections are taken."""


class EdgeConfig(uvicorn.Config):
    """uvicorn's settings, and ours for the protocol classes."""

    def __init__(self, options: ServerOptions, **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]
        self.options = options


def options_of(config: uvicorn.Config) -> ServerOptions:
    """Return the server's options from the configuration that uvicorn hands to a protocol."""
    if not isinstance(config, EdgeConfig):
        raise TypeError("this protocol needs an EdgeConfig")
    return config.options


def tune(transport: asyncio.Transport, options: ServerOptions) -> None:
    """Set TCP_NODELAY, and keep the buffers of this process and of the kernel short.

    A receipt is a small write that a picture follows. Nagle's algorithm holds the picture back
    until the receipt is acknowledged, which a client delays by up to 40 ms. asyncio sets
    TCP_NODELAY only on sockets that were created with the protocol number of TCP, which is not
    certain here.
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
        """Cancel the timer; nothing happens when it is off or has fired."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class UnambiguousRequests(h11.Connection):
    """Refuses requests whose length is ambiguous.

    A proxy may use `Content-Length` where h11 uses `Transfer-Encoding`; what one of them reads as a
    body is then a request to the other.
    """

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return the next event.

        Raises:
            h11.RemoteProtocolError: the input is no HTTP, or has two lengths.
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
        """Begin to wait for a request; refuse the socket when there are too many."""
        super().connection_made(transport)
        self._options = options_of(self.config)
        self._late = Deadline(self.loop)
        self._stall = Deadline(self.loop)
        tune(transport, self._options)
        limit = self._options.connections
        if len(self.connections) > limit and not admits(self, self.connections, self._options):
            self.evict()
        else:
            self._late.start(self._options.request_timeout_s, self._client_is_late)

    def data_received(self, data: bytes) -> None:
        """Read; a head that has begun must end in time."""
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
        """Start the timer of a client that reads nothing."""
        super().pause_writing()
        self._stall.start(self._options.send_timeout_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the timer: the client reads again."""
        self._stall.stop()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        self._late.stop()
        self._stall.stop()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def send_400_response(self, msg: str) -> None:
        """Refuse input that is no HTTP, in the form of all errors."""
        self._refuse(400, Refusal("bad_request", msg))

    @property
    def is_idle(self) -> bool:
        """Whether no request is in progress."""
        return self.conn.our_state is h11.IDLE

    def evict(self) -> None:
        """Close it, because there are too many connections."""
        message = f"at most {self._options.connections} sockets may be open (connections)"
        if self.is_idle:
            self._refuse(503, Refusal("too_many_connections", message, retry_after_s=RETRY_S))
        else:
            self.transport.abort()

    def _waits_for_client(self) -> bool:
        """Tell whether part of a head has arrived, or the rest of a body that is not read."""
        if self.conn.their_state is h11.IDLE:
            return bool(self.conn.trailing_data[0])
        return self.conn.their_state is h11.SEND_BODY and self.cycle.response_complete

    def _client_is_late(self) -> None:
        limit = self._options.request_timeout_s
        if self.conn.our_state is h11.IDLE:
            message = f"no complete request arrived within {limit:g} s (request_timeout_s)"
            self._refuse(408, Refusal("request_timeout", message))
        else:
            self.transport.abort()

    def _refuse(self, status: int, refusal: Refusal) -> None:
        if self.transport.is_closing():
            return
        body = json.dumps({"error": error_json(refusal)}).encode()
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


@runtime_checkable
class EvictableConnection(Protocol):
    """A connection that can be closed in favour of another one."""

    transport: asyncio.Transport
    client: tuple[str, int] | None

    @property
    def is_idle(self) -> bool:
        """Whether no request is in progress."""

    def evict(self) -> None:
        """Close it, because there are too many connections."""


def admits(
    newcomer: EvictableConnection, connections: Iterable[object], options: ServerOptions
) -> bool:
    """Tell whether a connection beyond the limit may stay, after closing another one for it.

    An address that holds at least two more than the newcomer's loses one, idle ones first.
    """
    addresses = Addresses(options.trusted_proxies)
    others = [
        each
        for each in connections
        if isinstance(each, EvictableConnection)
        and not each.transport.is_closing()
        and each is not newcomer
    ]
    if len(others) < options.connections:
        return True
    holders = [(each, _accounts(each, addresses)) for each in others]
    holders.sort(key=lambda holder: not holder[0].is_idle)
    held = held_by(accounts for _, accounts in holders)
    evicted = who_gives_way(holders, _accounts(newcomer, addresses), held)
    if evicted is not None:
        evicted.evict()
    return evicted is not None


def _accounts(connection: EvictableConnection, addresses: Addresses) -> Accounts:
    counted = addresses.of_peer(connection.client[0]) if connection.client else None
    return () if counted is None else (counted,)
