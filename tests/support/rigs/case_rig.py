"""Services for the hard cases: sessions in this process and over a socket, and what WELL means."""

import asyncio
import gc
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pool_rig
import torch
from rtc_rig import ServerRig, server_rig
from rtc_serving import reset
from session_suite import StreamViewer, looking
from stub_model import LogLine, read_log
from waiting import until

from reverie.bench.machine import resident_mib
from reverie.config import Deployment
from reverie.gpu_pool import Pool
from reverie.host import Engine
from reverie.rtc import RemoteSession, connect
from reverie.sessions import SessionLimits, SessionStore
from reverie.sessions.client.local_session import LocalSession
from reverie.sessions.client.session import Session

LIMIT_S = 30.0
"""For anything that must come, on a busy machine."""


class CaseService(Protocol):
    """Sessions of the stub, and what can happen to them.

    Attributes:
        ends_who_is_idle: a client that does nothing loses its session.
    """

    ends_who_is_idle: bool

    @property
    def store(self) -> SessionStore:
        """The server's side of all sessions."""

    @property
    def pool(self) -> Pool:
        """Where the models run."""

    @property
    def ready(self) -> bool:
        """What health says."""

    def session(self, **wanted: Any) -> AbstractAsyncContextManager[Session]:
        """Open a session, and end it with the block."""

    def another(self, session: Session) -> AbstractAsyncContextManager[Session]:
        """Drive a session from a further place; leaving the block leaves the session."""

    def broken(self, session: Session) -> AbstractAsyncContextManager[Session]:
        """Cut the line of a session without a word, and come back to it at once."""

    async def drain(self) -> None:
        """End all sessions as a server does that is asked to leave."""


class OpenService(Protocol):
    """Opens a service; keyword arguments go to the pool's options."""

    def __call__(
        self, *, mode: str = "inline", limits: SessionLimits | None = None, **pool: Any
    ) -> AbstractAsyncContextManager[CaseService]: ...


class LocalCases:
    """The Python API in this process."""

    ends_who_is_idle = False

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @property
    def store(self) -> SessionStore:
        return self.engine.store

    @property
    def pool(self) -> Pool:
        return self.engine.pool

    @property
    def ready(self) -> bool:
        return self.engine.ready

    def session(self, **wanted: Any) -> AbstractAsyncContextManager[Session]:
        return self.engine.session(**wanted)

    @asynccontextmanager
    async def another(self, session: Session) -> AsyncIterator[Session]:
        other = LocalSession(self.store.get(session.id))
        try:
            yield other
        finally:
            other._attachment.detach()

    @asynccontextmanager
    async def broken(self, session: Session) -> AsyncIterator[Session]:
        assert isinstance(session, LocalSession)
        session._attachment.detach()
        async with self.another(session) as again:
            yield again

    async def drain(self) -> None:
        await self.engine.drain(5.0)


class RemoteCases:
    """The Python API over a real socket."""

    ends_who_is_idle = True

    def __init__(self, rig: ServerRig) -> None:
        self.rig = rig

    @property
    def store(self) -> SessionStore:
        return self.rig.store

    @property
    def pool(self) -> Pool:
        return self.rig.pool

    @property
    def ready(self) -> bool:
        return self.rig.context.ready

    def session(self, **wanted: Any) -> AbstractAsyncContextManager[Session]:
        return connect(self.rig.url, **wanted)

    def another(self, session: Session) -> AbstractAsyncContextManager[Session]:
        assert isinstance(session, RemoteSession)
        return connect(self.rig.url, session=session.id, token=session.token)

    @asynccontextmanager
    async def broken(self, session: Session) -> AsyncIterator[Session]:
        assert isinstance(session, RemoteSession)
        drops, socket = session._link.drops, session._link._socket
        assert socket is not None
        reset(socket.transport.get_extra_info("socket"))
        socket.transport.abort()
        await until(lambda: session._link.drops > drops and session._link._socket is not None)
        yield session

    async def drain(self) -> None:
        await self.rig.context.drain()


@asynccontextmanager
async def local_cases(
    *, mode: str = "inline", limits: SessionLimits | None = None, **pool: Any
) -> AsyncIterator[CaseService]:
    """Run an engine in this process."""
    deployment = Deployment(pool=pool_rig.options(mode, **pool), sessions=limits or SessionLimits())
    async with Engine.from_deployment(deployment) as engine:
        yield LocalCases(engine)


@asynccontextmanager
async def remote_cases(
    *, mode: str = "inline", limits: SessionLimits | None = None, **pool: Any
) -> AsyncIterator[CaseService]:
    """Run a server on a loopback port."""
    async with server_rig(mode, limits=limits, **pool) as rig:
        yield RemoteCases(rig)


# --- the step log ---


def steps(log: Path, session: str | None = None, event: str | None = None) -> list[LogLine]:
    """Return the units in the step log, of one session or of all."""
    return [
        line
        for line in read_log(log)
        if session in (None, line.session) and event in (None, line.event)
    ]


def assert_one_step_at_a_time(lines: list[LogLine]) -> None:
    """Every unit ends before the next begins, of any session."""
    lines = [line for line in lines if line.event != "fault"]
    for start, end in zip(lines[::2], lines[1::2], strict=False):
        assert (start.event, end.event) == ("start", "end")
        assert (start.session, start.chunk, start.unit) == (end.session, end.chunk, end.unit)


def assert_nothing_twice(lines: list[LogLine]) -> None:
    """The units of one session come one after the other, and none comes again."""
    assert_one_step_at_a_time(lines)
    order = [(line.chunk, line.unit) for line in lines if line.event == "start"]
    assert order == sorted(set(order)), "two loops, or a step that was done twice"


# --- WELL ---


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a server holds of this process."""

    tasks: int
    threads: int
    files: int
    tensors: int
    memory_mib: float

    @classmethod
    def now(cls) -> "Footprint":
        gc.collect()
        # Threads of the default executor stay for the next job.
        threads = [each for each in threading.enumerate() if not each.name.startswith("asyncio_")]
        return cls(
            len(asyncio.all_tasks()),
            len(threads),
            len(os.listdir("/proc/self/fd")),
            sum(type(each) is torch.Tensor for each in gc.get_objects()),
            resident_mib(),
        )

    def exceeds(self, other: "Footprint") -> list[str]:
        """Name what is more than a tenth above another; memory may be 32 MiB more."""
        grown = [
            name
            for name in ("tasks", "threads", "files", "tensors")
            if getattr(self, name) > 1.1 * getattr(other, name)
        ]
        if self.memory_mib > 1.1 * other.memory_mib + 32:
            grown.append("memory_mib")
        return grown


@asynccontextmanager
async def well(service: CaseService, log: Path) -> AsyncIterator[None]:
    """Check that a block which ends all its sessions leaves a server as good as new.

    A new session gets its first chunk within twice the time of before and a second of the
    machine's own; slots, tasks, threads, files, tensors and memory are back; no dead session's
    step begins; no log line tells of tasks that were not awaited; health is true.
    """
    normal_s = await _first_chunk_s(service)
    await until(lambda: not _busy(service))
    before = Footprint.now()
    with _no_loose_ends():
        yield
        await until(lambda: _busy(service) == len(service.store) == 0)
        done = len(steps(log))
        assert await _first_chunk_s(service) < 2 * normal_s + 1.0
        later = {line.session for line in steps(log)[done:]}
        assert len(later) <= 1, "a step of a session that was over began"
        await until(lambda: _busy(service) == 0)
        await until(lambda: not Footprint.now().exceeds(before))
    assert service.ready


def _busy(service: CaseService) -> int:
    return sum(status.busy for status in service.pool.status.values())


async def _first_chunk_s(service: CaseService) -> float:
    start_s = time.monotonic()
    async with service.session(prompt="well") as session, looking(session) as screen:
        await screen.chunk()
        return time.monotonic() - start_s


@contextmanager
def _no_loose_ends() -> Iterator[None]:
    heard: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())

    ear = Ear()
    logging.getLogger("asyncio").addHandler(ear)
    try:
        yield
        gc.collect()
    finally:
        logging.getLogger("asyncio").removeHandler(ear)
    loose = ("never retrieved", "was destroyed")
    assert not [text for text in heard if any(each in text for each in loose)]


async def chunks(screen: StreamViewer, count: int) -> list[Any]:
    """Look at so many chunks."""
    return [frame for _ in range(count) for frame in await screen.chunk()]


__all__ = [
    "CaseService",
    "Footprint",
    "LocalCases",
    "OpenService",
    "RemoteCases",
    "assert_nothing_twice",
    "assert_one_step_at_a_time",
    "chunks",
    "local_cases",
    "remote_cases",
    "steps",
    "well",
]
