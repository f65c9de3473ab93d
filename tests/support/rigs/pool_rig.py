"""A pool with the stub model, and a viewer at the other end."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import stub_model

from reverie.engine.emissions import ControlApplied, ControlSuperseded, FramesOut, TextOut
from reverie.engine.inputs import OPENING, ControlId, KeysInput, PromptInput
from reverie.gpu_pool import ForkOrigin, Notification, Pool, PoolOptions, StartRequest, WorkerHandle
from reverie.gpu_pool.server.worker_process import ProcessHost
from reverie.gpu_pool.wire.session_messages import PlayheadMoved, PushInputs
from reverie.models.contract.controls import KeyEdge

LIMIT_S = 40.0
"""How long a test waits for what must come; much longer than it takes, for a loaded machine."""

T = TypeVar("T")


class Viewer:
    """A sink that keeps what it hears, and sees every chunk as soon as it comes.

    Attributes:
        opening: the receipt of the prompt that the session was opened with; it is no notice here.
    """

    def __init__(
        self,
        session: str,
        program: str = "world",
        *,
        origin: ForkOrigin | None = None,
    ) -> None:
        self.session = session
        self.origin = origin
        self.program = program
        self.notices: list[Notification] = []
        self.positions: list[int] = []
        self.lease: WorkerHandle | None = None
        self.opening: ControlApplied | ControlSuperseded | None = None
        self.sees = True
        self._news = asyncio.Event()

    def __call__(self, notice: Notification) -> None:
        self._news.set()
        if isinstance(notice, ControlApplied | ControlSuperseded) and notice.control == OPENING:
            self.opening = notice
            return
        self.notices.append(notice)
        if isinstance(notice, FramesOut) and self.sees and self.lease:
            self.lease.send(PlayheadMoved(self.session, notice.header.chunk))

    @property
    def texts(self) -> list[TextOut]:
        return [notice for notice in self.notices if isinstance(notice, TextOut)]

    @property
    def frames(self) -> list[FramesOut]:
        return [notice for notice in self.notices if isinstance(notice, FramesOut)]

    async def until(self, found: Callable[[list[Notification]], T | None]) -> T:
        """Wait until `found` finds something among the notices."""
        async with asyncio.timeout(LIMIT_S):
            while (result := found(self.notices)) is None:
                self._news.clear()
                await self._news.wait()
            return result

    async def hears(self, kind: type[T], count: int = 1) -> T:
        """Wait for the notice number `count` of a kind."""

        def found(notices: list[Notification]) -> T | None:
            matching = [notice for notice in notices if isinstance(notice, kind)]
            return matching[count - 1] if len(matching) >= count else None

        return await self.until(found)

    async def open(self, pool: Pool, **parameters: float) -> WorkerHandle:
        """Take a slot and begin to watch."""
        opening = StartRequest(
            self.session,
            "stub",
            self.program,
            7,
            "a frozen lake",
            parameters,
            origin=self.origin,
        )
        self.lease = await pool.lease(opening, self, self.positions.append)
        for out in self.frames:
            self.lease.send(PlayheadMoved(self.session, out.header.chunk))
        return self.lease

    @asynccontextmanager
    async def watching(self, pool: Pool, **parameters: float) -> AsyncIterator[WorkerHandle]:
        """Hold a slot for the length of the block."""
        lease = await self.open(pool, **parameters)
        try:
            yield lease
        finally:
            await lease.release()

    async def hold(self, pool: Pool, **parameters: float) -> None:
        """Hold a slot until cancelled."""
        async with self.watching(pool, **parameters):
            await asyncio.Event().wait()


def options(mode: str, family: str = stub_model.LOCATION, **changes: Any) -> PoolOptions:
    """Return options for the stub; `sessions` is the model's."""
    model: dict[str, Any] = {"name": "stub", "family": family}
    model.update({name: changes.pop(name) for name in ("sessions",) if name in changes})
    models = (model,)
    return PoolOptions.model_validate({"mode": mode, "models": models, **changes})


@asynccontextmanager
async def running(mode: str, **changes: Any) -> AsyncIterator[Pool]:
    """Run a pool; it is closed at the end."""
    pool = Pool(options(mode, **changes))
    await pool.start()
    try:
        yield pool
    finally:
        await pool.close()


def worker_pid(pool: Pool) -> int:
    """Return the process id of the worker that serves the stub now."""
    link = pool._supervisors["stub"]._link
    assert link is not None
    host = link.host
    assert isinstance(host, ProcessHost)
    assert host.pid is not None
    return host.pid


def is_alive(pid: int) -> bool:
    """Tell whether a process runs (one that has ended and was not waited for does not)."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def open_files() -> int:
    """Return how many descriptors this process has."""
    return len(os.listdir("/proc/self/fd"))


def prompt(session: str, control: str, text: str) -> PushInputs:
    """Return a message that changes the prompt."""
    return PushInputs(session, (PromptInput(ControlId(control), text),))


def press(session: str, control: str, key: str) -> PushInputs:
    """Return a message that holds a key."""
    return PushInputs(session, (KeysInput(ControlId(control), "move", (KeyEdge(key, True),)),))


__all__ = [
    "LIMIT_S",
    "Viewer",
    "is_alive",
    "open_files",
    "options",
    "press",
    "prompt",
    "running",
    "worker_pid",
]
