"""A session store over a fake pool, and clients that attach to its sessions."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fake_pool import FakeLease, FakePool
from waiting import until

from reverie.media import Clock, Codec, MonotonicClock, VideoFanout
from reverie.sessions.attachments.attachment import Attachment, AttachOptions, Role
from reverie.sessions.protocol.errors import AttachmentEndedError
from reverie.sessions.protocol.events import AnyEvent, Error, RequestAccepted
from reverie.sessions.protocol.media_events import MediaChunk, MediaComplete, MediaInit
from reverie.sessions.protocol.parsing import parse_command
from reverie.sessions.runtime.server_session import ServerSession
from reverie.sessions.runtime.session_registry import SessionCredentials
from reverie.sessions.runtime.session_request import SessionRequest
from reverie.sessions.runtime.session_store import SessionStore
from reverie.sessions.state.limits import SessionLimits
from reverie.sessions.streams.output_streams import OpenFanout

LIMIT_S = 20.0
"""Limit for anything that a test waits for."""


class Client:
    """An attached client that keeps all events that it was sent."""

    def __init__(self, attachment: Attachment) -> None:
        self.attachment = attachment
        self.events: list[AnyEvent] = []
        self._numbers = 0

    async def take(self) -> AnyEvent:
        async with asyncio.timeout(LIMIT_S):
            event = await self.attachment.take()
        self.events.append(event)
        return event

    async def until(self, type: str) -> AnyEvent:
        """Take events up to the next one of that type, and return it."""
        while (event := await self.take()).type != type:
            pass
        return event

    async def until_end(self) -> str:
        """Take all there is and return why it ended."""
        try:
            while True:
                await self.take()
        except AttachmentEndedError as error:
            return error.reason

    async def chunk(self) -> list[MediaChunk]:
        """Take events up to the last frame of a chunk; return its frames, and say it was seen."""
        frames: list[MediaChunk] = []
        while not (frames and frames[-1].last):
            event = await self.until("media.chunk")
            assert isinstance(event, MediaChunk)
            frames.append(event)
        self.submit("playhead", chunk=frames[-1].chunk, pts_us=frames[-1].pts_us)
        return frames

    def submit(self, type: str, **fields: object) -> str:
        self._numbers += 1
        id = f"p{self.attachment.key}.{self._numbers}"
        self.attachment.submit(parse_command({"type": type, "id": id, **fields}))
        return id

    async def ask(self, type: str, **fields: object) -> RequestAccepted | Error:
        """Submit a command and take events up to its answer."""
        id = self.submit(type, **fields)
        while True:
            event = await self.take()
            if isinstance(event, RequestAccepted | Error) and event.command == id:
                return event

    def types(self) -> list[str]:
        return [event.type for event in self.events]


def assert_well_formed(client: Client) -> None:
    """What holds for every attachment, however it was ended."""
    events = client.events
    assert [event.sequence for event in events] == list(range(len(events)))
    media = [event for event in events if event.type.startswith("media.")]
    chunks = [event for event in media if isinstance(event, MediaChunk)]
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    if media:
        assert isinstance(media[0], MediaInit)
    assert all(not isinstance(event, MediaComplete) for event in media[:-1])


class Rig:
    """One store over one pool."""

    def __init__(self, store: SessionStore, pool: FakePool) -> None:
        self.store = store
        self.pool = pool

    async def open(self, prompt: str = "a lake", **fields: object) -> SessionCredentials:
        request = SessionRequest(model="fake", prompt=prompt, **fields)  # type: ignore[arg-type]
        async with asyncio.timeout(LIMIT_S):
            return await self.store.create(request)

    def lease(self, session: ServerSession) -> FakeLease:
        return self.pool.of(session.id)

    def attach(
        self, session: ServerSession, role: Role = Role.DRIVER, codec: Codec = Codec.RGB24
    ) -> Client:
        return Client(session.attach(role, AttachOptions(codec=codec)))

    async def driven(self, prompt: str = "a lake") -> tuple[ServerSession, FakeLease, Client]:
        """Open a session and attach a driver to it."""
        session = (await self.open(prompt)).session
        await until(lambda: session.state.phase in ("active", "detached"))
        return session, self.lease(session), self.attach(session)


@asynccontextmanager
async def session_rig(
    limits: SessionLimits | None = None,
    clock: Clock | None = None,
    slots: int = 2,
    line: int = 2,
    open_fanout: OpenFanout = VideoFanout,
) -> AsyncIterator[Rig]:
    """Run a store; at the end every session is ended and no task may be left."""
    before = asyncio.all_tasks()
    pool = FakePool(slots, line)
    async with asyncio.TaskGroup() as tasks:
        store = SessionStore(
            pool,
            limits or SessionLimits(),
            tasks,
            clock=clock or MonotonicClock(),
            open_fanout=open_fanout,
        )
        yield Rig(store, pool)
        async with asyncio.timeout(LIMIT_S):
            await store.drain(1.0)
    assert pool.free == slots, "a place was not given back"
    assert not asyncio.all_tasks() - before, "a task was left"
