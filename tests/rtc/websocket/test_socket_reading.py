"""A socket is asked what it has not delivered yet."""

import asyncio
import contextlib
import socket
import sys
from asyncio import Transport
from typing import Any, cast

import pytest
import waiting

from reverie.rtc.websocket.socket_reading import SocketReading, read_socket

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of its queues")


async def connected() -> tuple[Transport, socket.socket]:
    """Return the transport of one end and the socket of the other, which reads nothing."""
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
    near.setblocking(False)
    transport, _ = await loop.create_connection(asyncio.Protocol, sock=near)
    return transport, far


@linux
async def test_what_a_client_has_not_read_is_outstanding_and_what_it_has_read_is_not() -> None:
    transport, far = await connected()
    with far:
        transport.write(bytes(2**24))
        stuck = read_socket(transport)
        assert stuck.outstanding_bytes > 2**20
        assert stuck.unsent_bytes > 2**20
        assert stuck.acked_bytes is not None
        far.settimeout(0.05)
        got = 0
        while got < 2**24:
            with contextlib.suppress(TimeoutError):
                got += len(far.recv(2**20))
            await asyncio.sleep(0)
        await waiting.until(lambda: read_socket(transport).outstanding_bytes == 0)
        done = read_socket(transport)
        assert done.acked_bytes is not None
        assert done.acked_bytes - stuck.acked_bytes >= 2**24 - stuck.outstanding_bytes
        assert done.bytes_per_s
        assert 0 < done.least_round_trip_us <= 10_000_000
    transport.abort()


class PlainTransport:
    """A transport over something that is no TCP socket."""

    def __init__(self, sock: object) -> None:
        self._sock = sock

    def get_write_buffer_size(self) -> int:
        return 1234

    def get_extra_info(self, name: str) -> Any:
        return self._sock if name == "socket" else None


def test_where_the_kernel_says_nothing_the_buffer_of_this_process_counts() -> None:
    near, far = socket.socketpair()
    with near, far:
        for sock in (None, near):
            transport = cast(Transport, PlainTransport(sock))
            assert read_socket(transport) == SocketReading(1234)
