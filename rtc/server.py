"""The listening server: starts, drains on the first signal, leaves at once on the second.

Draining: new sessions and sockets are refused with a typed answer while the sessions that run are
brought to an end by their owner (`drain`), which ends their sockets with `shutdown`; then the
listener closes. All of it has one limit.
"""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from reverie.rtc.http_connection import EdgeConfig, HttpConnection
from reverie.rtc.options import ServerOptions
from reverie.rtc.ws_connection import WsConnection

FORCED_EXIT = 130

TICK_S = 0.1
TICKS_A_DAY = 864_000


def leave_now() -> None:
    """End the process without any clean-up; workers end with it."""
    os._exit(FORCED_EXIT)


class Server(uvicorn.Server):
    """uvicorn with a drain that is the application's, and exit status 0 after it.

    Args:
        app: what to serve.
        options: where, and the limits.
        drain: brings everything that runs to an end; awaited once, within the limit.
        force: what the second signal does.
    """

    def __init__(
        self,
        app: ASGIApp,
        options: ServerOptions,
        drain: Callable[[], Awaitable[None]],
        force: Callable[[], None] = leave_now,
    ) -> None:
        super().__init__(_uvicorn_config(app, options))
        self._options = options
        self._drain = drain
        self._force = force
        self.ready = asyncio.Event()
        self._leaving = asyncio.Event()

    @property
    def url(self) -> str:
        """The address to open, once started."""
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Server"]:
        """Serve inside a block, without handling signals; leaving the block drains."""
        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(self._serve(), name="serve")
            started = tasks.create_task(self.ready.wait(), name="started")
            await asyncio.wait((serving, started), return_when=asyncio.FIRST_COMPLETED)
            started.cancel()
            try:
                yield self
            finally:
                self.leave()

    def leave(self) -> None:
        """Begin to drain now."""
        self.should_exit = True
        self._leaving.set()

    async def main_loop(self) -> None:
        """Tick until it is time to leave."""
        ticks = 0
        while not await self.on_tick(ticks):
            ticks = (ticks + 1) % TICKS_A_DAY
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._leaving.wait(), TICK_S)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and tell those who wait for it."""
        await super().startup(sockets)
        self.ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain, then close what is still open."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._options.drain_timeout_s):
                await self._drain()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals while serving; unlike uvicorn, do not die of them afterwards."""
        before = {
            number: signal.signal(number, self.handle_exit)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to drain on the first signal; leave on the second."""
        if self.should_exit:
            self.force_exit = True
            self._force()
        self.should_exit = True  # seen at the next tick


def _uvicorn_config(app: ASGIApp, options: ServerOptions) -> EdgeConfig:
    return EdgeConfig(
        options,
        app=app,
        host=options.host,
        port=options.port,
        http=HttpConnection,
        ws=WsConnection,
        ws_max_size=options.message_bytes,
        ws_per_message_deflate=False,  # video does not shrink, and small messages may not grow
        ws_ping_interval=options.ping_interval_s,
        ws_ping_timeout=options.ping_timeout_s,
        lifespan="on",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=max(1, round(options.close_timeout_s)),
    )
