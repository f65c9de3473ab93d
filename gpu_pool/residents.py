"""The sessions of one worker: a driver each, and what is asked of them. Step thread only."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reverie.engine.admission import Admission
from reverie.engine.candidate import Candidate
from reverie.engine.driver import LoopDriver
from reverie.engine.emissions import ControlSuperseded
from reverie.engine.errors import AdmissionError, RefusedError
from reverie.engine.options import DriverOptions
from reverie.engine.position import Position
from reverie.gpu_pool.heartbeat import Heartbeat
from reverie.gpu_pool.messages import (
    Advance,
    Asked,
    CloseSession,
    Done,
    Interrupt,
    OpenSession,
    Pause,
    PushInputs,
    Refused,
    ReleaseKeys,
    Reset,
    RestoreSnapshot,
    Resume,
    Rewind,
    Seen,
    TakeSnapshot,
    Told,
    Watched,
)
from reverie.gpu_pool.outgoing import Outgoing
from reverie.models.errors import SpecError
from reverie.models.instance import ModelInstance
from reverie.models.loop import Durable, LoopKernel, LoopRequest
from reverie.models.spec import LoopSpec, ProgramSpec

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Model:
    """What a worker has loaded."""

    instance: ModelInstance
    kernels: dict[str, LoopKernel[Any]]
    admission: Admission
    options: DriverOptions


@dataclass(frozen=True, slots=True)
class Resident:
    """An open session.

    Attributes:
        serial: what the heartbeat calls it.
        alone: never runs in one pass with others.
    """

    serial: int
    alone: bool
    loop: str
    driver: LoopDriver[Any]


class Residents:
    """Opens sessions, carries out what is asked of them, closes them."""

    def __init__(
        self,
        model: Model,
        outgoing: Outgoing,
        heartbeat: Heartbeat,
        now_us: Callable[[], int],
    ) -> None:
        self._model = model
        self._outgoing = outgoing
        self._heartbeat = heartbeat
        self._now_us = now_us
        self._sessions: dict[str, Resident] = {}

    def __getitem__(self, session: str) -> Resident:
        return self._sessions[session]

    def candidates(self) -> Sequence[Candidate]:
        """Return what could run now."""
        now_us = self._now_us()
        candidates = []
        for resident in self._sessions.values():
            with self._heartbeat.unit([resident.serial]):
                candidate = resident.driver.ready(now_us)
            self._outgoing.emit(resident.driver.take_emissions())
            if candidate is not None:
                candidates.append(candidate)
        return candidates

    def open(self, message: OpenSession) -> None:
        """Begin a session, or say why not."""
        if message.session in self._sessions:
            self._refuse(message, "exists", f"session {message.session} is open already")
            return
        try:
            program, loop = self._program(message.program)
            self._model.admission.admit(message.session, loop)
        except (AdmissionError, SpecError) as error:
            code = "full" if isinstance(error, AdmissionError) else "bad_program"
            self._refuse(message, code, str(error))
            return
        with self._heartbeat.unit([message.request]):
            driver = self._driver(message, program, loop)
        if isinstance(driver, Exception):
            self._model.admission.leave(message.session)
            self._refuse(message, "open_failed", f"{type(driver).__name__}: {driver}")
            return
        self._sessions[message.session] = Resident(
            message.request, message.alone, loop.name, driver
        )
        self._done(message, driver.position)

    def close(self, message: CloseSession) -> None:
        """End a session; closing what is not open is done already."""
        resident = self._sessions.pop(message.session, None)
        position = self._end(resident) if resident else Position(-1, 0)
        self._done(message, position)

    def close_all(self) -> None:
        """End every session."""
        while self._sessions:
            self._end(self._sessions.popitem()[1])

    def tell(self, message: Told) -> None:
        """Pass on what needs no answer; for a session that has gone it means nothing."""
        if resident := self._sessions.get(message.session):
            driver = resident.driver
            match message:
                case PushInputs():
                    self._push(driver, message)
                case ReleaseKeys():
                    driver.release_keys()
                case Seen(chunk=chunk):
                    driver.seen(chunk, self._now_us())
                case Watched(watched=watched):
                    driver.watched(watched)
            self._outgoing.emit(driver.take_emissions())

    def ask(self, message: Asked) -> None:
        """Carry out a request between two units, and answer it."""
        resident = self._sessions.get(message.session)
        if resident is None:
            self._refuse(message, "no_session", f"session {message.session} is not open")
            return
        durable: Durable | None = None
        # To begin again or to go on from a snapshot may reach into the model.
        with self._heartbeat.unit([resident.serial]):
            answer = _answer(resident.driver, message)
            if isinstance(message, TakeSnapshot) and isinstance(answer, Position):
                durable = resident.driver.kept(message.name)
        self._outgoing.emit(resident.driver.take_emissions())
        match answer:
            case Position():
                self._done(message, answer, durable)
            case RefusedError(code=code):
                self._refuse(message, code, str(answer))
            case _:
                self._refuse(message, "request_failed", f"{type(answer).__name__}: {answer}")

    def _program(self, name: str) -> tuple[ProgramSpec, LoopSpec]:
        spec = self._model.instance.spec
        program = spec.program(name)
        if len(program.loops) > 1:
            raise SpecError(f"program {name} has several loops, which is not served yet")
        return program, spec.loop(program.loops[0])

    def _driver(
        self, message: OpenSession, program: ProgramSpec, loop: LoopSpec
    ) -> LoopDriver[Any] | Exception:
        defaults = {parameter.name: parameter.default for parameter in loop.parameters}
        request = LoopRequest(
            message.session, message.seed, message.prompt, {**defaults, **message.parameters}
        )
        options = replace(self._model.options, lead_chunks=program.lead_chunks, trace=message.trace)
        try:
            driver = LoopDriver(
                self._model.kernels[loop.name],
                self._model.instance,
                request,
                options,
                durable=message.durable,
                chunks=message.chunks,
                pts_us=message.pts_us,
            )
            for snapshot in message.kept:
                driver.keep(snapshot.name, snapshot.chunk, snapshot.durable)
        except Exception as error:
            # The session boundary: a model that cannot begin this session may begin others.
            logger.exception("session %s could not be opened", message.session)
            return error
        return driver

    def _end(self, resident: Resident) -> Position:
        session = resident.driver.session
        try:
            with self._heartbeat.unit([resident.serial]):
                position = resident.driver.close()
        finally:
            self._model.admission.leave(session)
        self._outgoing.emit(resident.driver.take_emissions())
        return position

    def _push(self, driver: LoopDriver[Any], message: PushInputs) -> None:
        try:
            driver.push(message.inputs)
        except RefusedError as error:
            # The session checks before it sends, so this is rare; but each input gets its receipt.
            logger.warning("session %s: inputs refused: %s", message.session, error)
            self._outgoing.emit(
                ControlSuperseded(message.session, item.control, None) for item in message.inputs
            )

    def _done(
        self,
        message: OpenSession | CloseSession | Asked,
        position: Position,
        durable: Durable | None = None,
    ) -> None:
        self._outgoing.answer(
            Done(message.request, message.session, position.chunk, position.pts_us, durable)
        )

    def _refuse(self, message: OpenSession | Asked, code: str, text: str) -> None:
        self._outgoing.answer(Refused(message.request, message.session, code, text))


def _answer(driver: LoopDriver[Any], message: Asked) -> Position | Exception:
    try:
        return _carried_out(driver, message)
    except RefusedError as error:
        return error
    except Exception as error:
        # The session boundary: a model that cannot do this for one session may serve the others.
        logger.exception("session %s: %s failed", driver.session, type(message).__name__)
        return error


def _carried_out(driver: LoopDriver[Any], message: Asked) -> Position:
    match message:
        case Pause():
            return driver.pause()
        case Resume():
            return driver.resume()
        case Advance(chunks=chunks):
            return driver.advance(chunks)
        case Interrupt(seen=seen):
            return driver.interrupt(seen)
        case Rewind(chunk=chunk):
            return driver.rewind(chunk)
        case Reset(seed=seed):
            return driver.reset(seed)
        case TakeSnapshot(name=name):
            return driver.snapshot(name)
        case RestoreSnapshot(name=name):
            return driver.restore(name)
