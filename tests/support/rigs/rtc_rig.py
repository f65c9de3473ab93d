"""The whole server over the stub model, in the test's event loop, and a plain client for it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pool_rig
from rtc_serving import serving
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from reverie.gpu_pool import Pool
from reverie.rtc.app import create_app
from reverie.rtc.app_context import AppContext
from reverie.rtc.options import ServerOptions
from reverie.rtc.wire.framing import decode_event
from reverie.sessions import SessionLimits, SessionStore
from reverie.sessions.protocol.events import AnyEvent, ControlApplied
from reverie.sessions.protocol.media_events import MediaChunk
from reverie.sessions.recording.options import RecordingOptions
from reverie.sessions.recording.recordings import Recordings

LIMIT_S = 20.0
"""How long a test waits for what must come; much longer than it takes."""


def bearer(secret: str) -> dict[str, str]:
    """Return the header that carries a secret."""
    return {"Authorization": f"Bearer {secret}"}


@dataclass(slots=True)
class ServerRig:
    """A running server and what is behind it."""

    url: str
    pool: Pool
    store: SessionStore
    context: AppContext
    http: httpx.AsyncClient

    def socket_url(self, session: str) -> str:
        return f"{self.url.replace('http', 'ws', 1)}/v1/sessions/{session}/ws"

    async def open(self, **body: Any) -> dict[str, Any]:
        """Open a session over HTTP and return the answer."""
        answer = await self.http.post("/v1/sessions", json={"model": "stub", **body})
        assert answer.status_code == 201, answer.text
        opened: dict[str, Any] = answer.json()
        return opened

    @asynccontextmanager
    async def client(self, opened: dict[str, Any], **hello: Any) -> AsyncIterator["WireClient"]:
        """Attach over a real WebSocket."""
        async with connect(
            self.socket_url(opened["id"]), compression=None, proxy=None, max_size=None
        ) as socket:
            client = WireClient(socket)
            await client.hello(hello.pop("token", opened["token"]), **hello)
            yield client

    @asynccontextmanager
    async def caller(self, host: str) -> AsyncIterator[httpx.AsyncClient]:
        """Ask from another address of this machine, such as 127.0.0.2."""
        transport = httpx.AsyncHTTPTransport(local_address=host)
        async with httpx.AsyncClient(base_url=self.url, transport=transport) as http:
            yield http

    @property
    def busy(self) -> int:
        """Slots that are taken."""
        return sum(status.busy for status in self.pool.status.values())


@dataclass(slots=True)
class WireClient:
    """A client that keeps all events, and reports each chunk as seen."""

    socket: ClientConnection
    events: list[AnyEvent] = field(default_factory=list)
    sees: bool = True
    commands: int = 0

    async def hello(self, token: str, **fields: Any) -> None:
        fields = {"role": "driver", "codecs": ["rgb24"], **fields}
        await self.say(type="hello", protocol=1, token=token, **fields)

    async def say(self, **fields: Any) -> str:
        """Send a message; return its id."""
        self.commands += 1
        fields.setdefault("id", f"m{self.commands}")
        await self.socket.send(json.dumps(fields))
        return str(fields["id"])

    async def hear(self) -> AnyEvent:
        """Wait for the next event."""
        async with asyncio.timeout(LIMIT_S):
            event = decode_event(await self.socket.recv())
        self.events.append(event)
        if self.sees and isinstance(event, MediaChunk) and event.last:
            await self.say(type="playhead", chunk=event.chunk, pts_us=max(0, event.pts_us))
        return event

    async def until(self, wanted: Callable[[AnyEvent], bool]) -> AnyEvent:
        """Hear events until one is as wanted."""
        while not wanted(event := await self.hear()):
            pass
        return event

    async def hears(self, kind: str) -> Any:
        """Hear events until one of a type."""
        return await self.until(lambda event: event.type == kind)

    async def ask(self, **fields: Any) -> AnyEvent:
        """Send a command and wait for its answer."""
        command = await self.say(**fields)
        return await self.until(
            lambda event: (
                event.type in ("request.accepted", "error")
                and getattr(event, "command", None) == command
            )
        )

    async def applied(self, command: str) -> ControlApplied:
        """Hear events until a control acts."""
        event = await self.until(
            lambda event: isinstance(event, ControlApplied) and event.control == command
        )
        assert isinstance(event, ControlApplied)
        return event

    async def chunk(self, number: int) -> MediaChunk:
        """Hear events until the last frame of a chunk with at least that number."""
        event = await self.until(
            lambda event: isinstance(event, MediaChunk) and event.last and event.chunk >= number
        )
        assert isinstance(event, MediaChunk)
        return event

    async def closed(self) -> tuple[int, str]:
        """Hear all that still comes; return code and reason of the close."""
        try:
            while True:
                await self.hear()
        except ConnectionClosed as error:
            return (error.rcvd.code, error.rcvd.reason) if error.rcvd else (1006, "")


async def together(*coroutines: Coroutine[Any, Any, Any]) -> list[Any]:
    """Run coroutines at the same time; return what each returned."""
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(each) for each in coroutines]
    return [task.result() for task in running]


@asynccontextmanager
async def _recordings(options: RecordingOptions | None) -> AsyncIterator[Recordings | None]:
    if options is None:
        yield None
        return
    library = Recordings(options)
    await library.start()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(library.run())
        yield library
        library.leave()
    await library.close()


@asynccontextmanager
async def server_rig(
    mode: str = "inline",
    server: ServerOptions | None = None,
    limits: SessionLimits | None = None,
    recordings: RecordingOptions | None = None,
    **pool_changes: Any,
) -> AsyncIterator[ServerRig]:
    """Run the whole server; afterwards nothing of it is left."""
    options = server or ServerOptions()
    async with (
        Pool(pool_rig.options(mode, **pool_changes)) as pool,
        _recordings(recordings) as library,
        asyncio.TaskGroup() as tasks,
    ):
        store = SessionStore(pool, limits or SessionLimits(), tasks, recordings=library)
        context = AppContext(store, pool, options)
        async with (
            serving(create_app(context), options, context.drain) as running,
            httpx.AsyncClient(base_url=running.url, trust_env=False) as http,
        ):
            yield ServerRig(running.url, pool, store, context, http)
