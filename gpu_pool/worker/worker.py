"""The worker: loads a model, then runs units until it is told to leave.

One thread does all model work. Between two units it reads what has come in, lets the scheduler pick
what runs next, and passes on what came out; with nothing to run it waits for a message. The same
code runs in a process of its own (`gpu_pool/__main__.py`) and on a thread (`inline_worker.py`).
"""

import logging
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from reverie.engine.admission import Admission
from reverie.engine.batch import run_batch
from reverie.engine.errors import AdmissionError
from reverie.engine.options import DriverOptions
from reverie.engine.scheduler import Candidate, StepScheduler
from reverie.gpu_pool.wire.connection import Connection
from reverie.gpu_pool.wire.errors import WarmUpError
from reverie.gpu_pool.wire.heartbeat import Heartbeat
from reverie.gpu_pool.wire.messages import (
    DeviceLost,
    FreeSlot,
    FromWorker,
    LoadFailed,
    LoadModel,
    ModelLoaded,
    Ping,
    Shutdown,
    ToWorker,
)
from reverie.gpu_pool.wire.ring import RingWriter, layout_for
from reverie.gpu_pool.wire.session_messages import (
    CloseSession,
    OpenSession,
    PlayheadMoved,
    PushInputs,
    ReleaseKeys,
    SetWatched,
)
from reverie.gpu_pool.wire.shared_memory import SharedMemory
from reverie.gpu_pool.worker.loaded_model import LoadedModel
from reverie.gpu_pool.worker.outgoing import OutgoingMessages
from reverie.gpu_pool.worker.prompt_prefetch import PromptPrefetch
from reverie.gpu_pool.worker.session_table import SessionTable
from reverie.gpu_pool.worker.warm_up import WarmUp
from reverie.gpu_pool.worker.worker_inbox import WorkerInbox
from reverie.models.contract.errors import DeviceLostError, DeviceMemoryError, ModelError
from reverie.models.contract.instance import STEPS, MemoryBudget, require_taken
from reverie.models.contract.registry import find_family
from reverie.models.services.device_errors import classify

logger = logging.getLogger(__name__)


class Worker:
    """One model on one device."""

    def __init__(
        self,
        connection: Connection[FromWorker, ToWorker],
        memory: SharedMemory,
        heartbeat: Heartbeat,
        on_lost: Callable[[], None] | None = None,
    ) -> None:
        """Take over the worker's ends; `on_lost` is called when the server is gone."""
        self._connection = connection
        self._memory = memory
        self._heartbeat = heartbeat
        self._inbox = WorkerInbox(connection, on_lost)

    def run(self) -> None:
        """Load, serve, and return when told to leave or when the server is gone.

        Raises:
            ConnectionClosedError: the server went while something was being sent.
        """
        self._inbox.start()
        messages = self._inbox.take(wait=True)
        if not isinstance(messages[0], LoadModel):
            return
        self._heartbeat.take(1)
        try:
            step_loop = self._load(messages[0])
        except Exception as error:
            # The process boundary: whatever a model raises while it loads is for the operator.
            self._connection.send(_load_failed(error, messages[0].family))
            return
        try:
            step_loop.serve(self._inbox, messages[1:])
        except DeviceLostError as error:
            logger.exception("this worker can do nothing more")
            self._connection.send(DeviceLost(str(error)))

    def _load(self, message: LoadModel) -> "StepLoop":
        sys.path.extend(place for place in message.search_path if place not in sys.path)
        if message.options.threads:
            torch.set_num_threads(message.options.threads)
        family = find_family(message.family, message.options.parallel)
        require_taken(message.options, family.spec)
        # What is unseen is kept as well, so a long lead needs as many chunks.
        kept = family.spec.kept_chunks(message.options.history_chunks)
        wanted = replace(message.options, history_chunks=kept)
        instance = family.load(wanted)
        if message.options.steps:
            instance.spec = instance.spec.with_default(STEPS, message.options.steps)
        instance.spec.validate(message.options.parallel)  # sizes may be the checkpoint's own
        room = instance.room or MemoryBudget(wanted.sessions, wanted.history_chunks)
        options = DriverOptions(history_chunks=room.history_chunks)
        kernels = {loop.name: family.kernel(loop.name, instance) for loop in instance.spec.loops}
        admission = Admission(instance, room.sessions, options)
        model = LoadedModel(instance, kernels, admission, options)
        for program in instance.spec.programs:
            admission.require_room(program.name, model.loops(program.name))
        # Programs of the same loops take the same branches.
        programs = {program.loops: program.name for program in reversed(instance.spec.programs)}
        for name in programs.values():
            WarmUp(model, name, now_us).run()
        together = [model.loops(program.name) for program in instance.spec.programs]
        ring = RingWriter(self._memory, layout_for(instance.spec, message.ring_slots))
        self._connection.send(
            ModelLoaded(
                spec=instance.spec,
                weights_version=instance.weights_version,
                slots=min(admission.slots(loops) for loops in together),
                session_bytes=max(admission.session_bytes(loops) for loops in together),
                ring=ring.layout,
            )
        )
        prompt_prefetch = PromptPrefetch(
            instance, now_us, self._inbox.wake, round(message.prompt_limit_s * 1e6)
        )
        model = replace(model, frame_memory=ring.memory)
        return StepLoop(
            model, self._connection, ring, self._heartbeat, message.max_batch, prompt_prefetch
        )


class StepLoop:
    """Runs units, once the model is loaded."""

    def __init__(
        self,
        model: LoadedModel,
        connection: Connection[FromWorker, ToWorker],
        ring: RingWriter,
        heartbeat: Heartbeat,
        max_batch: int,
        prompt_prefetch: PromptPrefetch,
    ) -> None:
        self._model = model
        self._ring = ring
        self._heartbeat = heartbeat
        self._outgoing = OutgoingMessages(connection, ring)
        self._session_table = SessionTable(
            model, self._outgoing, heartbeat, now_us, prompt_prefetch
        )
        self._scheduler = StepScheduler(max_batch)

    def serve(self, inbox: WorkerInbox, messages: list[ToWorker]) -> None:
        """Work until `Shutdown`, then end every session."""
        while True:
            for message in messages:
                if isinstance(message, Shutdown):
                    self._session_table.close_all()
                    return
                self._apply(message)
            self._heartbeat.take(len(messages))
            self._session_table.deliver_prompts()
            self._outgoing.flush()
            busy = self._step()
            self._outgoing.flush()
            limit_s = None if busy else self._session_table.wait_s()
            messages = inbox.take(wait=not busy, limit_s=limit_s)

    def _apply(self, message: ToWorker) -> None:
        match message:
            case FreeSlot(slot=slot):
                self._ring.release(slot)
            case OpenSession():
                self._session_table.open(message)
            case CloseSession():
                self._session_table.close(message)
                self._scheduler.forget(message.session)
            case PushInputs() | ReleaseKeys() | PlayheadMoved() | SetWatched():
                self._session_table.tell(message)
            case Ping():
                pass
            case LoadModel() | Shutdown():
                raise AssertionError(f"{type(message).__name__} where it cannot be")
            case _:
                self._session_table.ask(message)

    def _step(self) -> bool:
        """Run one batch; False when there was nothing to run, or no room for what came out."""
        if self._outgoing.blocked:
            return False
        picked = self._scheduler.pick(self._session_table.candidates())
        if not picked:
            return False
        batch = self._apart(picked)
        session_table = [self._session_table[candidate.session] for candidate in batch]
        drivers = [
            worker_session.driver(candidate.owner.loop)
            for worker_session, candidate in zip(session_table, batch, strict=True)
        ]
        kernel = self._model.kernels[drivers[0].loop]
        limit = self._scheduler.limit
        with self._heartbeat.unit([worker_session.serial for worker_session in session_table]):
            run_batch(kernel, self._model.instance, drivers, now_us, limit)
        for worker_session in session_table:
            self._outgoing.emit(worker_session.take_emissions())
        return True

    def _apart(self, batch: Sequence[Candidate]) -> Sequence[Candidate]:
        """Return those that may run in one pass with the first, which is the most urgent."""
        alone = [self._session_table[candidate.session].alone for candidate in batch]
        if alone[0]:
            return batch[:1]
        return [each for each, is_alone in zip(batch, alone, strict=True) if not is_alone]


def _load_failed(error: Exception, family: str) -> LoadFailed:
    """Return the reason in a line; an unforeseen error is also logged, with its trace."""
    try:
        told = classify(error)
    except DeviceLostError as lost:
        logger.exception("cannot load %s", family)
        return LoadFailed(str(lost), "device_lost")
    if isinstance(told, DeviceMemoryError):
        return LoadFailed(str(told), "out_of_memory")
    if isinstance(error, WarmUpError):
        return LoadFailed(str(error), error.code)
    if isinstance(error, (ModelError, AdmissionError)):
        return LoadFailed(str(error))
    logger.exception("cannot load %s", family)
    return LoadFailed(f"{type(error).__name__}: {error}")


def now_us() -> int:
    """Return the step thread's clock."""
    return time.monotonic_ns() // 1000
