"""How a server ends; `test_shutdown.py` does the same to a real process."""

import asyncio
import signal

from fake_clock import FakeClock
from rtc_serving import RawSocket, serving
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from reverie.rtc.options import ServerOptions
from reverie.rtc.server import Server


async def page(request: Request) -> Response:
    return PlainTextResponse("still here")


PAGE = Starlette(routes=[Route("/", page)])


async def test_requests_are_still_answered_while_draining() -> None:
    draining, answered = asyncio.Event(), asyncio.Event()

    async def drain() -> None:
        draining.set()
        await answered.wait()

    async with asyncio.timeout(20), serving(PAGE, ServerOptions(), drain) as server:
        server.leave()
        await draining.wait()
        raw = await RawSocket.open(server.url)
        await raw.say(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        assert b"still here" in await raw.rest(2.0)
        answered.set()
        await raw.close()


async def test_a_drain_that_does_not_end_is_cut_at_its_limit() -> None:
    async def drain() -> None:
        await asyncio.Event().wait()

    options = ServerOptions(drain_timeout_s=0.1)
    async with asyncio.timeout(20), serving(PAGE, options, drain):
        pass  # leaving the block drains


async def test_a_signal_that_comes_twice_at_once_is_one_and_a_later_one_is_the_second() -> None:
    drained, forced, clock = asyncio.Event(), [], FakeClock()
    server = Server(
        PAGE,
        ServerOptions(port=0),
        drained.wait,  # type: ignore[arg-type]
        force=lambda: forced.append(True),
        now_s=lambda: clock.now_us() / 1e6,
    )
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        serving_task = tasks.create_task(server.serve())
        await server.ready.wait()
        signal.raise_signal(signal.SIGTERM)
        clock.advance(0.9)
        signal.raise_signal(signal.SIGTERM)
        assert not forced
        assert server.should_exit
        clock.advance(0.2)
        signal.raise_signal(signal.SIGTERM)
        assert forced == [True]
        drained.set()
        await serving_task


async def test_the_first_signal_drains_and_the_second_leaves_at_once() -> None:
    drains, forced = [], []

    async def drain() -> None:
        drains.append(True)

    server = Server(PAGE, ServerOptions(port=0), drain, force=lambda: forced.append(True))
    before = signal.getsignal(signal.SIGTERM)
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        serving_task = tasks.create_task(server.serve())
        await server.ready.wait()
        signal.raise_signal(signal.SIGTERM)
        assert not forced
        signal.raise_signal(signal.SIGINT)
        assert forced == [True]
        await serving_task
    assert drains == [True]
    assert signal.getsignal(signal.SIGTERM) is before
