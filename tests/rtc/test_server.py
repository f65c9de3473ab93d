"""C16 at the level of a process: what signals do."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from rtc_serving import RawSocket, serving
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from reverie.rtc.options import ServerOptions
from reverie.rtc.server import FORCED_EXIT

SCRIPT = Path(__file__).parents[1] / "support" / "rtc_signal_server.py"


@asynccontextmanager
async def server_process(drain_s: float, limit_s: float) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(SCRIPT), str(drain_s), str(limit_s), stdout=PIPE
    )
    try:
        assert (await line(process)).startswith("http://127.0.0.1:")
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def line(process: Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(20):
        return (await process.stdout.readline()).decode().strip()


async def test_the_first_signal_drains_and_leaves_with_status_0() -> None:
    async with server_process(drain_s=0.05, limit_s=10) as process:
        process.terminate()
        assert [await line(process) for _ in range(3)] == ["draining", "drained", "left"]
        assert await asyncio.wait_for(process.wait(), 5) == 0


async def test_a_drain_that_does_not_end_is_cut_at_its_limit() -> None:
    async with server_process(drain_s=60, limit_s=0.2) as process:
        process.send_signal(signal.SIGINT)
        assert [await line(process) for _ in range(2)] == ["draining", "left"]
        assert await asyncio.wait_for(process.wait(), 5) == 0


async def test_the_second_signal_leaves_at_once() -> None:
    async with server_process(drain_s=60, limit_s=60) as process:
        process.terminate()
        assert await line(process) == "draining"
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 5) == FORCED_EXIT


async def test_requests_are_still_answered_while_draining() -> None:
    draining = asyncio.Event()
    answered = asyncio.Event()

    async def page(request: Request) -> Response:
        return PlainTextResponse("still here")

    async def drain() -> None:
        draining.set()
        await answered.wait()

    app = Starlette(routes=[Route("/", page)])
    async with asyncio.timeout(10), serving(app, ServerOptions(), drain) as server:
        server.should_exit = True
        await draining.wait()
        raw = await RawSocket.open(server.url)
        await raw.say(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        assert b"still here" in await raw.rest(2.0)
        answered.set()
        await raw.close()
