"""C16: a real `reverie serve` with sockets open, asked to leave, and told to."""

import asyncio
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest
import stuck_serve
from rtc_rig import WireClient, together
from rtc_serve_process import ServeProcess, alive, descendants, serve_process
from rtc_serving import RawSocket
from waiting import until
from websockets.asyncio.client import ClientConnection, connect

from reverie.rtc.server import FORCED_EXIT

pytestmark = pytest.mark.timeout(
    150
)  # a server process loads its libraries, and so does its worker


async def attach(server: ServeProcess, socket: ClientConnection, opened: Any) -> WireClient:
    client = WireClient(socket)
    await client.hello(opened["token"])
    await client.chunk(0)
    return client


async def refusal(server: ServeProcess) -> str:
    """Return how a new session is refused."""
    try:
        answer = await server.http.post("/v1/sessions", json={})
    except httpx.TransportError:
        return "gone"
    code = answer.json().get("error", {}).get("code", "")
    return f"{answer.status_code} {code}"


async def test_a_server_that_is_stopped_tells_all_clients_and_exits_with_status_0(
    tmp_path: Path,
) -> None:
    async with serve_process(tmp_path, drain_timeout_s=10) as server:
        running = await server.open(step_ms=150)
        paused = await server.open()
        async with (
            connect(server.socket_url(running["id"]), proxy=None) as one,
            connect(server.socket_url(paused["id"]), proxy=None) as two,
            connect(server.socket_url(paused["id"]), proxy=None) as handshake,
        ):
            raw = await RawSocket.open(server.url)
            mid_step = await attach(server, one, running)
            idle = await attach(server, two, paused)
            await idle.ask(type="pause")
            workers = descendants(server.process.pid)
            assert workers
            server.process.send_signal(signal.SIGTERM)
            refused, *closed = await together(
                new_session_until_refused(server),
                mid_step.closed(),
                idle.closed(),
                WireClient(handshake).closed(),
            )
            assert refused in ("503 shutting_down", "gone")
            assert closed == [(1001, "shutdown")] * 3
            for client in (mid_step, idle):
                assert [event.type for event in client.events[-2:]] == [
                    "media.complete",
                    "session.closed",
                ]
                assert {event.reason for event in client.events[-2:]} == {"shutdown"}  # type: ignore[union-attr]
            assert await server.exit_code(15) == 0
            await raw.close()
        await until(lambda: not alive(workers))


async def new_session_until_refused(server: ServeProcess) -> Any:
    while (refused := await refusal(server)).startswith("201"):
        await asyncio.sleep(0.01)
    return refused


def stuck(what: str) -> list[str]:
    """Return what to run for a server in which something hangs."""
    return [stuck_serve.__file__, what]


async def test_an_encoder_that_hangs_does_not_keep_the_server_from_leaving(tmp_path: Path) -> None:
    async with serve_process(tmp_path, stuck("encoder"), drain_timeout_s=4) as server:
        opened = await server.open()
        async with connect(server.socket_url(opened["id"]), proxy=None) as socket:
            client = WireClient(socket)
            await client.hello(opened["token"], codecs=["h264"])
            await server.says("stuck")
            workers = descendants(server.process.pid)
            server.process.send_signal(signal.SIGTERM)
            assert await client.closed() == (1001, "shutdown")
            assert await server.exit_code(30) == 0
        await until(lambda: not alive(workers))


async def test_what_a_library_waits_for_at_exit_is_cut_at_the_limit(tmp_path: Path) -> None:
    async with serve_process(tmp_path, stuck("library"), drain_timeout_s=1) as server:
        server.process.send_signal(signal.SIGTERM)
        assert await server.exit_code(30) == 1


async def test_a_thread_that_lets_no_other_run_is_cut_at_the_limit(tmp_path: Path) -> None:
    async with serve_process(tmp_path, stuck("interpreter"), drain_timeout_s=2) as server:
        opened = await server.open()
        async with connect(server.socket_url(opened["id"]), proxy=None) as socket:
            client = WireClient(socket)
            await client.hello(opened["token"], codecs=["h264"])
            await client.chunk(0)
            server.process.send_signal(signal.SIGTERM)
            assert await server.exit_code(30) == 1


async def test_told_to_leave_twice_it_leaves_at_once_with_its_workers(tmp_path: Path) -> None:
    async with serve_process(tmp_path, drain_timeout_s=60) as server:
        opened = await server.open(step_ms=20_000)
        async with connect(server.socket_url(opened["id"]), proxy=None) as socket:
            client = WireClient(socket)
            await client.hello(opened["token"])
            await client.hears("session.attached")
            workers = descendants(server.process.pid)
            server.process.send_signal(signal.SIGTERM)
            assert await new_session_until_refused(server) == "503 shutting_down"
            server.process.send_signal(signal.SIGTERM)  # an echo, such as make's
            assert await new_session_until_refused(server) == "503 shutting_down"
            server.process.send_signal(signal.SIGINT)
            assert await server.exit_code(5) == FORCED_EXIT
            await until(lambda: not alive(workers))
