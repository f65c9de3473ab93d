"""The worker: loads a model, then runs units until it is told to leave.

One thread does all model work. Between two units it reads what has come in, lets the scheduler pick
what runs next, and passes on what came out; with nothing to run it waits for a message. The same
code runs in a process of its own (`process.py`) and on a thread (`thread.py`).
"""

import logging
import sys
import time
from collections.abc import Callable, Sequence

import torch

from reverie.engine.admission import Admission, CostBook
from reverie.engine.batch import run_batch
from reverie.engine.candidate import Candidate
from reverie.engine.errors import AdmissionError
from reverie.engine.options import DriverOptions
from reverie.engine.scheduler import StepScheduler
from reverie.gpu_pool.connection import Connection
from reverie.gpu_pool.errors import WarmUpError
from reverie.gpu_pool.heartbeat import Heartbeat
from reverie.gpu_pool.inbox import Inbox
from reverie.gpu_pool.memory import SharedMemory
from reverie.gpu_pool.messages import (
    CloseSession,
    DeviceLost,
    FreeSlot,
    FromWorker,
    Loaded,
    LoadFailed,
    LoadModel,
    OpenSession,
    Ping,
    PushInputs,
    ReleaseKeys,
    Seen,
    Shutdown,
    ToWorker,
    Watched,
)
from reverie.gpu_pool.model import Model
from reverie.gpu_pool.outgoing import Outgoing
from reverie.gpu_pool.prompt_desk import PromptDesk
from reverie.gpu_pool.residents import Residents
from reverie.gpu_pool.ring import RingWriter, layout_for
from reverie.gpu_pool.warm_up import WarmUp
from reverie.models.device_errors import told_apart
from reverie.models.errors import DeviceLostError, DeviceMemoryError, ModelError
from reverie.models.instance import Room, require_taken
from reverie.models.registry import find_family

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
        self._inbox = Inbox(connection, on_lost)

    def run(self) -> None:
        """Load, serve, and return when told to leave or when the server is gone.

        Raises:
            ConnectionLostError: the server went while something was being sent.
        """
        self._inbox.start()
        messages = self._inbox.take(wait=True)
        if not isinstance(messages[0], LoadModel):
            return
        self._heartbeat.take(1)
        try:
            floor = self._load(messages[0])
        except Exception as error:
            # The process boundary: whatever a model raises while it loads is for the operator.
            self._connection.send(_load_failed(error, messages[0].family))
            return
        try:
            floor.serve(self._inbox, messages[1:])
        except DeviceLostError as error:
            logger.exception("this worker can do nothing more")
            self._connection.send(DeviceLost(str(error)))

    def _load(self, message: LoadModel) -> "Floor":
        sys.path.extend(place for place in message.search_path if place not in sys.path)
        if message.options.threads:
            torch.set_num_threads(message.options.threads)
        family = find_family(message.family, message.options.parallel)
        require_taken(message.options, family.spec)
        instance = family.load(message.options)
        instance.spec.validate(message.options.parallel)  # sizes may be the checkpoint's own
        room = instance.room or Room(message.options.sessions, message.options.history_chunks)
        options = DriverOptions(history_chunks=room.history_chunks)
        kernels = {loop.name: family.kernel(loop.name, instance) for loop in instance.spec.loops}
        admission = Admission(instance, room.sessions, options)
        model = Model(instance, kernels, admission, options)
        for program in instance.spec.programs:
            admission.require_room(program.name, model.loops(program.name))
        # Programs of the same loops take the same branches.
        programs = {program.loops: program.name for program in reversed(instance.spec.programs)}
        for name in programs.values():
            WarmUp(model, name, now_us).run()
        together = [model.loops(program.name) for program in instance.spec.programs]
        ring = RingWriter(self._memory, layout_for(instance.spec, message.ring_slots))
        self._connection.send(
            Loaded(
                spec=instance.spec,
                weights_version=instance.weights_version,
                slots=min(admission.slots(loops) for loops in together),
                session_bytes=max(admission.session_bytes(loops) for loops in together),
                ring=ring.layout,
            )
        )
        desk = PromptDesk(instance, now_us, self._inbox.wake, round(message.prompt_limit_s * 1e6))
        return Floor(model, self._connection, ring, self._heartbeat, message.max_batch, desk)


class Floor:
    """Where the work is done, once the model is loaded."""

    def __init__(
        self,
        model: Model,
        connection: Connection[FromWorker, ToWorker],
        ring: RingWriter,
        heartbeat: Heartbeat,
        max_batch: int,
        desk: PromptDesk,
    ) -> None:
        self._model = model
        self._ring = ring
        self._heartbeat = heartbeat
        self._outgoing = Outgoing(connection, ring)
        self._residents = Residents(model, self._outgoing, heartbeat, now_us, desk)
        self._scheduler = StepScheduler(max_batch)
        self._costs = CostBook()

    def serve(self, inbox: Inbox, messages: list[ToWorker]) -> None:
        """Work until `Shutdown`, then end every session."""
        while True:
            for message in messages:
                if isinstance(message, Shutdown):
                    self._residents.close_all()
                    return
                self._apply(message)
            self._heartbeat.take(len(messages))
            self._residents.deliver_prompts()
            self._outgoing.flush()
            busy = self._step()
            self._outgoing.flush()
            limit_s = None if busy else self._residents.wait_s()
            messages = inbox.take(wait=not busy, limit_s=limit_s)

    def _apply(self, message: ToWorker) -> None:
        match message:
            case FreeSlot(slot=slot):
                self._ring.release(slot)
            case OpenSession():
                self._residents.open(message)
            case CloseSession():
                self._residents.close(message)
                self._scheduler.forget(message.session)
                self._costs.forget(message.session)
            case PushInputs() | ReleaseKeys() | Seen() | Watched():
                self._residents.tell(message)
            case Ping():
                pass
            case LoadModel() | Shutdown():
                raise AssertionError(f"{type(message).__name__} where it cannot be")
            case _:
                self._residents.ask(message)

    def _step(self) -> bool:
        """Run one batch; False when there was nothing to run, or no room for what came out."""
        if self._outgoing.blocked:
            return False
        picked = self._scheduler.pick(self._residents.candidates())
        if not picked:
            return False
        batch = self._apart(picked)
        residents = [self._residents[candidate.session] for candidate in batch]
        drivers = []
        for resident, candidate in zip(residents, batch, strict=True):
            driver = resident.driver(candidate.owner.loop)
            driver.waited = candidate.waited
            drivers.append(driver)
        kernel = self._model.kernels[drivers[0].loop]
        limit = self._scheduler.limit
        with self._heartbeat.unit([resident.serial for resident in residents]):
            run_batch(kernel, self._model.instance, drivers, now_us, self._costs, limit)
        for resident in residents:
            self._outgoing.emit(resident.take_emissions())
        return True

    def _apart(self, batch: Sequence[Candidate]) -> Sequence[Candidate]:
        """Return those that may run in one pass with the first, which is the most urgent."""
        alone = [self._residents[candidate.session].alone for candidate in batch]
        if alone[0]:
            return batch[:1]
        return [each for each, is_alone in zip(batch, alone, strict=True) if not is_alone]


def _load_failed(error: Exception, family: str) -> LoadFailed:
    """Return the reason in a line; what nobody foresaw is also logged, with its trace."""
    try:
        told = told_apart(error)
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
