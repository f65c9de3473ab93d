"""The listening server: starts, drains on the first signal, exits at once on the second.

Draining: new sessions and sockets are refused with a typed answer while the application ends the
running sessions (`drain`), which closes their sockets with `shutdown`; then the listener closes.
All of it has one limit. A second limit ends the process even if something hangs (`leave_within`).
"""

import asyncio
import contextlib
import faulthandler
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from reverie.rtc.http.connection import EdgeConfig, HttpConnection
from reverie.rtc.options import ServerOptions
from reverie.rtc.websocket.connection import WebSocketConnection
from reverie.rtc.wire.errors import CannotListenError

FORCED_EXIT = 130

REPEAT_S = 1.0
"""A signal to a process group arrives twice, because `make` forwards it to its child."""

EXIT_MARGIN_S = 2.0
"""For what remains after the limit of the drain; then the process is ended."""

TICK_S = 0.1
TICKS_A_DAY = 864_000


def leave_now() -> None:
    """Exit without any clean-up; workers end with the process."""
    os._exit(FORCED_EXIT)


def leave_within(limit_s: float) -> None:
    """Exit after `limit_s` if the process still runs, and print where each thread hangs.

    This works even when a thread holds the interpreter, or a library joins its threads at exit. The
    exit status is then 1.
    """
    faulthandler.dump_traceback_later(limit_s, exit=True)


def listening_at(host: str, port: int) -> list[socket.socket]:
    """Return a listening socket for each address of a host.

    Raises:
        CannotListenError: one of them cannot be opened; none is left open.
    """
    found: list[socket.socket] = []
    try:
        flags = socket.AI_PASSIVE
        infos = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=flags)
        for family, address in dict.fromkeys((info[0], info[4]) for info in infos):
            found.append(socket.create_server(address, family=family))
    except OSError as error:
        for each in found:
            each.close()
        raise CannotListenError(host, port, error) from None
    return found


class Server(uvicorn.Server):
    """uvicorn with a drain that is the application's, and exit status 0 after it.

    Args:
        app: what to serve.
        options: where, and the limits.
        drain: ends everything that runs; awaited once, within the limit.
        force: what the second signal does.
        now_s: a clock.
        on_leaving: called at the first signal with the time that the process may take to end.
    """

    def __init__(
        self,
        app: ASGIApp,
        options: ServerOptions,
        drain: Callable[[], Awaitable[None]],
        force: Callable[[], None] = leave_now,
        now_s: Callable[[], float] = time.monotonic,
        on_leaving: Callable[[float], None] | None = None,
    ) -> None:
        super().__init__(_uvicorn_config(app, options))
        self._options = options
        self._drain = drain
        self._force = force
        self._now_s = now_s
        self._on_leaving = on_leaving
        self._first_signal: tuple[int, float] | None = None
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
        """Serve while the block runs, without handling signals; leaving the block drains."""
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
        """Tick until the server has to end."""
        ticks = 0
        while not await self.on_tick(ticks):
            ticks = (ticks + 1) % TICKS_A_DAY
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._leaving.wait(), TICK_S)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and set `ready`.

        Raises:
            CannotListenError: the address cannot be used; nothing was started.
        """
        options = self._options
        await super().startup(sockets or listening_at(options.host, options.port))
        self.ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain, then close connections that are still open."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._options.drain_timeout_s):
                await self._drain()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals while serving; unlike uvicorn, do not raise them again afterwards."""
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
        """Begin to drain on the first signal; exit on the second, unless it is an echo."""
        now_s = self._now_s()
        if self._first_signal is None:
            self._first_signal = sig, now_s
            if self._on_leaving is not None:
                self._on_leaving(self._options.drain_timeout_s + EXIT_MARGIN_S)
        elif sig == self._first_signal[0] and now_s - self._first_signal[1] < REPEAT_S:
            return
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
        ws=WebSocketConnection,
        ws_max_size=options.message_bytes,
        ws_per_message_deflate=False,  # video does not shrink, and small messages must not grow
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
