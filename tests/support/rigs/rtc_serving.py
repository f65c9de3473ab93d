"""A server on a loopback port in the test's own event loop, and sockets that misbehave."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

from starlette.types import ASGIApp

from reverie.rtc.options import ServerOptions
from reverie.rtc.server import Server


async def nothing() -> None:
    """Drain of a server that has nothing running."""


@asynccontextmanager
async def serving(
    app: ASGIApp, options: ServerOptions, drain: Callable[[], Awaitable[None]] = nothing
) -> AsyncIterator[Server]:
    """Serve `app` on a free port for as long as the block lasts."""
    options = options.model_copy(update={"port": 0})
    async with Server(app, options, drain, force=lambda: None).running() as server:
        yield server


def address(url: str) -> tuple[str, int]:
    """Return host and port of a URL."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


class RawSocket:
    """A TCP connection that says exactly what it is told to say."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def open(
        cls, url: str, *, receive_bytes: int | None = None, host: str | None = None
    ) -> "RawSocket":
        """Connect; `receive_bytes` makes the receive window that small, `host` is from where."""
        sock = socket.socket()
        if host is not None:
            sock.bind((host, 0))
        if receive_bytes is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, address(url))
        return cls(*await asyncio.open_connection(sock=sock, limit=2**10))

    async def say(self, data: bytes) -> None:
        """Send bytes."""
        self.writer.write(data)
        await self.writer.drain()

    async def rest(self, limit_s: float) -> bytes:
        """Return what comes until the other side ends, within a time."""
        async with asyncio.timeout(limit_s):
            return await self.reader.read()

    def reset(self) -> None:
        """Cut with a TCP reset, as a machine does that has lost its network stack."""
        reset(self.writer.get_extra_info("socket"))
        self.writer.transport.abort()

    async def close(self) -> None:
        """Close in the ordinary way."""
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


def reset(sock: socket.socket) -> None:
    """Make the coming close of a socket a TCP reset."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def upgrade(path: str, host: str = "127.0.0.1", extra: str = "") -> bytes:
    """Return the request of a WebSocket handshake."""
    return (
        f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n{extra}\r\n"
    ).encode()
