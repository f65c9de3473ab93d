"""The pool: every model that is served, behind one asyncio interface."""

import asyncio
import logging
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from types import MappingProxyType, TracebackType
from typing import Self

from reverie.gpu_pool.server.session_entry import OnPosition
from reverie.gpu_pool.server.supervisor import Supervisor
from reverie.gpu_pool.server.worker_handle import WorkerHandle
from reverie.gpu_pool.wire.errors import PoolClosedError, UnknownDeploymentError
from reverie.gpu_pool.wire.notifications import Sink
from reverie.gpu_pool.wire.options import PoolOptions, crowded_threads
from reverie.gpu_pool.wire.shares import Accounts
from reverie.gpu_pool.wire.start_request import StartRequest
from reverie.models.contract.spec import ModelSpec
from reverie.models.contract.speed import MeasuredSpeed
from reverie.models.services.cores import available_cores

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """How a model is doing, for health and metrics.

    Attributes:
        ready: whether a worker serves it right now.
        failure: why it is not served any more; empty while it is.
        slots: sessions that fit at once.
        busy: slots that are taken.
        waiting: sessions in the line.
        losses: workers lost since the start.
        crowded: whether sessions wait, and one of an owner without a session would have to.
        speed: what was measured when it was loaded; None where nothing was.
    """

    ready: bool
    failure: str
    weights_version: str
    slots: int
    busy: int
    waiting: int
    losses: int
    crowded: bool = False
    speed: MeasuredSpeed | None = None


class Pool:
    """Workers for the models of `options`. Used on one event loop only."""

    def __init__(self, options: PoolOptions) -> None:
        """Prepare the pool; `start` starts the workers."""
        self._options = options
        self._supervisors: dict[str, Supervisor] = {}
        self._root: asyncio.Task[None] | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Start a worker for each model; return when all of them have loaded.

        May run while a server that says that it is not ready. When cancelled, or when a model
        cannot be loaded, no worker is left.

        Raises:
            ModelUnavailableError: a model could not be loaded.
        """
        assert self._root is None, "a pool is started once"
        if warning := crowded_threads(self._options, available_cores()):
            logger.warning("%s", warning)
        for model in self._options.models:
            self._supervisors[model.name] = Supervisor(model, self._options)
        # The one task that is not in a group: it is the group, and `close` awaits it.
        self._root = asyncio.create_task(self._supervise(), name="gpu-pool")
        try:
            for supervisor in self._supervisors.values():
                await supervisor.settled.wait()
                if supervisor.slot_manager.failure:
                    raise copy(supervisor.slot_manager.failure)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """End every worker: politely, then by force. A second call waits for the same end.

        Sessions that are still open are told `SessionLost`; a waiting call gets `PoolClosedError`.
        """
        self._closed = True
        for supervisor in self._supervisors.values():
            supervisor.stop()
        if self._root:
            await asyncio.shield(self._root)

    @property
    def ready(self) -> bool:
        """Whether every model has a worker that is loaded and warm."""
        supervisors = self._supervisors.values()
        return bool(supervisors) and all(each.slot_manager.ready for each in supervisors)

    @property
    def specs(self) -> Mapping[str, ModelSpec]:
        """The description of each model that has been loaded, by the name it is served under."""
        return MappingProxyType(
            {name: each.spec for name, each in self._supervisors.items() if each.spec}
        )

    @property
    def status(self) -> Mapping[str, ModelStatus]:
        """How each model is doing."""
        return {name: _status(supervisor) for name, supervisor in self._supervisors.items()}

    def expected_position(self, model: str, accounts: Accounts) -> int:
        """Return what a session would get now: 0 is a slot, else its position in the queue.

        Raises:
            UnknownDeploymentError: no such model is served.
            PoolFullError: slots and line are taken.
            PoolClosedError: the pool is shutting down.
            ModelUnavailableError: the model is not served any more.
        """
        return self._supervisor(model).slot_manager.expected_position(accounts)

    async def lease(
        self, opening: StartRequest, sink: Sink, on_position: OnPosition | None = None
    ) -> WorkerHandle:
        """Begin a session, after waiting in the queue if need be.

        Safe to cancel at any time: a position in the queue is given up, a session that has begun is
        ended, and its slot is free as soon as no unit of it is running.

        Args:
            sink: hears everything about the session, from before this returns until the release.
            on_position: called with the position in the queue, 1 being next, whenever it changes.

        Raises:
            UnknownDeploymentError: no such model is served.
            SessionExistsError: there is a session of that id.
            PoolFullError: slots and line are taken.
            PoolClosedError: the pool is shutting down.
            ModelUnavailableError: the model is not served any more.
            RequestRefusedError: the worker cannot begin this session.
            WorkerLostError: beginning the session has ended the worker.
            AskTimeoutError: the worker did not begin it in time, and is replaced.
        """
        slot_manager = self._supervisor(opening.model).slot_manager
        entry = slot_manager.enter(opening, sink, on_position)
        try:
            await entry.opened
        except BaseException:
            slot_manager.leave(entry)
            raise
        return WorkerHandle(slot_manager, entry)

    def _supervisor(self, model: str) -> Supervisor:
        if self._closed:
            raise PoolClosedError("the pool is closed")
        supervisor = self._supervisors.get(model)
        if supervisor is None:
            served = ", ".join(sorted(self._supervisors)) or "none"
            raise UnknownDeploymentError(f"no model {model!r} is served; served: {served}")
        return supervisor

    async def _supervise(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                for name, supervisor in self._supervisors.items():
                    tasks.create_task(supervisor.run(), name=f"worker of {name}")
        except Exception:
            # This is awaited only at the close, and until then it must not go unnoticed.
            logger.exception("the pool has failed")
            raise


def _status(supervisor: Supervisor) -> ModelStatus:
    slot_manager = supervisor.slot_manager
    return ModelStatus(
        ready=slot_manager.ready,
        failure=str(slot_manager.failure or ""),
        weights_version=supervisor.loaded.weights_version if supervisor.loaded else "",
        slots=slot_manager.slots,
        busy=slot_manager.busy,
        waiting=len(slot_manager.line),
        losses=supervisor.losses,
        crowded=slot_manager.crowded,
        speed=supervisor.spec.speed if supervisor.spec else None,
    )
