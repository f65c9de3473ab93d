"""A small message and a large one behind it: neither waits for the other to be acknowledged."""

import asyncio
import socket
import time

import pytest
from rtc_rig import ServerRig, WireClient
from rtc_serving import RawSocket

from reverie.rtc.client.connect import connect as connect_client
from reverie.rtc.http.connection import HttpConnection
from reverie.rtc.websocket.connection import WebSocketConnection
from reverie.sessions.protocol.media_events import MediaChunk

ROUNDS = 24
ACKNOWLEDGED_S = 0.04
"""A client that has nothing to say puts an acknowledgement off by so much."""


def is_undelayed(transport: asyncio.BaseTransport) -> bool:
    """Tell whether a TCP socket sends small writes at once."""
    sock = transport.get_extra_info("socket")
    assert sock.family in (socket.AF_INET, socket.AF_INET6)
    return bool(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))


async def test_no_socket_that_the_server_accepts_is_delayed(
    rig: ServerRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[str, bool]] = []
    for kind in (HttpConnection, WebSocketConnection):
        before = kind.connection_made

        def noted(self, transport, kind=kind, before=before) -> None:  # type: ignore[no-untyped-def]
            before(self, transport)
            made.append((kind.__name__, is_undelayed(transport)))

        monkeypatch.setattr(kind, "connection_made", noted)
    raw = await RawSocket.open(rig.url)
    opened = await rig.open()
    async with rig.client(opened) as client:
        await client.hears("session.attached")
    await raw.close()
    assert {kind for kind, _ in made} == {"HttpConnection", "WebSocketConnection"}
    assert all(undelayed for _, undelayed in made)


async def test_no_socket_of_the_python_client_is_not_delayed(rig: ServerRig) -> None:
    async with connect_client(rig.url, model="stub") as session:
        link = session._link
        assert link._socket is not None
        assert is_undelayed(link._socket.transport)


async def test_what_a_command_brings_about_comes_at_once(rig: ServerRig) -> None:
    """The quicker ones count: a busy machine makes some late, and Nagle's rule nearly all."""
    async with rig.client(await rig.open()) as client:
        await client.chunk(3)
        took_s = [await command_to_picture_s(client, turn % 2 == 0) for turn in range(ROUNDS)]
    assert sorted(took_s)[ROUNDS // 4] < ACKNOWLEDGED_S


async def command_to_picture_s(client: WireClient, down: bool) -> float:
    """Press or release a key; return the time to the picture that its receipt names."""
    told_s = time.monotonic()
    command = await client.say(
        type="push_action", action={"move": "left"}, edge="press" if down else "release"
    )
    applied = await client.applied(command)
    await client.until(
        lambda event: isinstance(event, MediaChunk) and event.pts_us >= applied.pts_us
    )
    return time.monotonic() - told_s
