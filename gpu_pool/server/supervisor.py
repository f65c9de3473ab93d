"""The life of one model's workers: start, watch, replace, stop.

A worker that dies, or that makes no progress past the step limit with something to do, is killed
and replaced by another one, which takes its sessions up. A model whose workers are lost repeatedly
is given up.
"""

import asyncio
import logging
from collections import deque
from dataclasses import replace

from reverie.gpu_pool.inline_worker import InlineHost
from reverie.gpu_pool.server.hang_detector import HangDetector
from reverie.gpu_pool.server.load_message import load_message
from reverie.gpu_pool.server.slot_manager import SlotManager
from reverie.gpu_pool.server.worker_link import WorkerLink
from reverie.gpu_pool.server.worker_process import ProcessHost, WorkerHost
from reverie.gpu_pool.wire.backoff import Backoff
from reverie.gpu_pool.wire.errors import ModelUnavailableError, PoolClosedError
from reverie.gpu_pool.wire.messages import (
    DeviceLost,
    FromWorker,
    LoadFailed,
    ModelLoaded,
    Shutdown,
)
from reverie.gpu_pool.wire.options import ModelOptions, PoolOptions
from reverie.models.contract.spec import ModelSpec

logger = logging.getLogger(__name__)

_LONGEST_PAUSE_S = 30.0
_LONGEST_TICK_S = 0.5
_DEVICE_CODES = frozenset({"out_of_memory", "device_lost"})
"""Of a load that failed; passed on unchanged, because they say where to look."""


class Supervisor:
    """Keeps a worker for one model.

    Attributes:
        loaded: what the newest worker that has loaded said of itself.
        settled: set once the first worker has loaded, or has failed to.
        losses: workers that were lost since the start.
    """

    def __init__(self, model: ModelOptions, options: PoolOptions) -> None:
        self.model = model
        self.slot_manager = SlotManager(options, self._replace, self._restored)
        self.loaded: ModelLoaded | None = None
        self.settled = asyncio.Event()
        self.losses = 0
        self._options = options
        self._load_code = ""  # why the last load failed, if it has
        self._recent: deque[float] = deque()
        self._backoff = Backoff(options.restart_pause_s, _LONGEST_PAUSE_S)
        self._stop: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._link: WorkerLink | None = None
        self._load: asyncio.Future[ModelLoaded]
        self._trouble: asyncio.Future[str]
        self._ended: asyncio.Future[None]

    @property
    def spec(self) -> ModelSpec | None:
        """The model's description; None until it has been loaded once."""
        return self.loaded.spec if self.loaded else None

    async def run(self) -> None:
        """Keep a worker until `stop`; then, or when cancelled, leave none behind."""
        try:
            while not self._stop.done():
                reason = await self._one_worker()
                if self._stop.done():
                    break
                self.losses += 1
                if not self._may_restart():
                    self._give_up(reason)
                    break
                logger.error("worker of %s was lost: %s", self.model.name, reason)
                await self._pause()
        finally:
            if self.slot_manager.failure is None:
                self.slot_manager.give_up("pool_closed", PoolClosedError("the pool is closed"))
            self.settled.set()

    def stop(self) -> None:
        """Have `run` end; sessions that are still open are lost."""
        if not self._stop.done():
            self._stop.set_result(None)
        self._end_of_use("the pool is closed")

    # --- what the link says ---

    def received(self, link: WorkerLink, message: FromWorker) -> None:
        """Take a message; one of a worker that is out of use means nothing."""
        if link is not self._link:
            return
        match message:
            case ModelLoaded():
                if not self._load.done():
                    self._load.set_result(message)
            case LoadFailed(message=text, code=code):
                self._load_code = code
                self._replace(text)
            case DeviceLost(message=text):
                self._replace(text)
            case _:
                self.slot_manager.traffic.received(message)

    def ended(self, link: WorkerLink, reason: str) -> None:
        """Take notice of a worker's end, be it wanted or not."""
        if link is self._link:
            self._replace(reason)
        if not self._ended.done():
            self._ended.set_result(None)

    # --- inside ---

    async def _one_worker(self) -> str:
        """Run one worker from its start until nothing of it is left; return why it ended."""
        loop = asyncio.get_running_loop()
        self._load_code = ""
        self._load, self._trouble = loop.create_future(), loop.create_future()
        self._ended = loop.create_future()
        host: WorkerHost = (
            InlineHost(self.model.name) if self._options.mode == "inline" else ProcessHost()
        )
        link = WorkerLink(self.model.name, host, self, self._options.send_queue)
        self._link = link
        speed = self.loaded.spec.speed if self.loaded else None
        link.start(load_message(self.model, self._options, speed))
        try:
            await asyncio.wait(
                (self._load, self._trouble),
                timeout=self._options.load_limit_s,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if self._load.done():
                await self._serve(link, self._load.result())
            elif not self._trouble.done():
                self._replace(f"not loaded within {self._options.load_limit_s:g} s")
            return self._trouble.result()
        finally:
            self._end_of_use("the pool is closed")
            await self._leave(link)

    async def _serve(self, link: WorkerLink, loaded: ModelLoaded) -> None:
        self.loaded = self._with_speed(loaded)
        if not self._trouble.done():
            self.slot_manager.begin(link, loaded)
        self.settled.set()
        limit_s = self._options.step_limit_s
        watch = HangDetector(link, link.host.heartbeat, limit_s)
        while not self._trouble.done():
            await asyncio.wait((self._trouble,), timeout=min(limit_s / 4, _LONGEST_TICK_S))
            if trouble := watch.trouble(asyncio.get_running_loop().time()):
                self._replace(trouble)
            # A process that a model has forked can keep the connection open after its end.
            elif (how := link.host.wait(0)) is not None:
                self._replace(how)

    def _with_speed(self, loaded: ModelLoaded) -> ModelLoaded:
        """Return the model with the speed that the first worker measured, and log it once."""
        speed = loaded.spec.speed
        if speed is None:
            first = self.loaded.spec.speed if self.loaded else None
            return replace(loaded, spec=replace(loaded.spec, speed=first))
        logger.info("%s makes %s", self.model.name, speed)
        for tried in speed.tried:
            logger.info("%s, %s", self.model.name, tried)
        if speed.warning:
            logger.warning("%s: %s", self.model.name, speed.warning)
        return loaded

    async def _leave(self, link: WorkerLink) -> None:
        """Wait until the worker has ended, by itself if it is to stop, or killed."""
        if self._stop.done() and self._load.done():
            link.send(Shutdown())
            await asyncio.wait((self._ended,), timeout=self._options.stop_limit_s)
        link.kill()
        # A thread that hangs cannot be killed; then this waits for its end, or for ours.
        await asyncio.wait((self._ended, self._stop), return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait((self._ended,), timeout=self._options.stop_limit_s)
        if not self._ended.done():
            logger.error("worker of %s hangs and is left behind", self.model.name)

    def _replace(self, reason: str) -> None:
        """Take the worker out of use at once; it is ended and replaced."""
        link = self._link
        self._end_of_use(reason)
        if link:
            link.kill()

    def _end_of_use(self, reason: str) -> None:
        link, self._link = self._link, None
        if link is None:
            return
        if self._stop.done():
            self.slot_manager.give_up("pool_closed", PoolClosedError(reason))
        else:
            by_others = link.host.ended_by_others()
            suspects = frozenset[int]() if by_others else link.host.heartbeat.suspects()
            self.slot_manager.lose(reason, suspects)
        if not self._trouble.done():
            self._trouble.set_result(reason)

    def _restored(self, sessions: int) -> None:
        name = self.model.name
        logger.info("worker of %s was replaced, and %d sessions continue", name, sessions)

    def _give_up(self, reason: str) -> None:
        name = self.model.name
        if self.loaded is None:  # the pool's start raises this, so it is not logged as well
            text = f"model {name} cannot be loaded: {reason}"
        else:
            often, window_s = self._options.restarts, self._options.restart_window_s
            text = (
                f"model {name} is given up after {often} restarts within {window_s:g} s: {reason}"
            )
            logger.error("%s", text)
        code = self._load_code if self._load_code in _DEVICE_CODES else "model_unavailable"
        self.slot_manager.give_up("model_unavailable", ModelUnavailableError(text, code))

    def _may_restart(self) -> bool:
        """Tell whether one more worker may be started.

        Never when the first did not even load; but a process whose device fails says little of the
        next one.
        """
        if self.loaded is None:
            return self._load_code == "device_lost" and self.losses == 1
        now_s = asyncio.get_running_loop().time()
        while self._recent and self._recent[0] < now_s - self._options.restart_window_s:
            self._recent.popleft()
        self._recent.append(now_s)
        return len(self._recent) <= self._options.restarts

    async def _pause(self) -> None:
        """Wait before a restart: not at all the first time, then longer and longer."""
        if len(self._recent) == 1:  # no other loss within `restart_window_s`
            self._backoff.restart()
        elif self._recent:
            await asyncio.wait((self._stop,), timeout=self._backoff.take())
