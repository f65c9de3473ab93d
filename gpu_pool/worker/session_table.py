"""The sessions of one worker, and what is asked of them. Step thread only."""

import logging
from collections.abc import Callable, Sequence

from reverie.engine.errors import AdmissionError
from reverie.engine.loop_status import Position
from reverie.engine.scheduler import Candidate
from reverie.gpu_pool.wire.heartbeat import Heartbeat
from reverie.gpu_pool.wire.messages import RequestDone, RequestRefused
from reverie.gpu_pool.wire.session_messages import (
    ActNow,
    CloseSession,
    Interrupt,
    OneWay,
    OpenSession,
    PlayheadMoved,
    PushInputs,
    ReleaseKeys,
    Request,
    Reset,
    SetWatched,
    TakeSnapshot,
)
from reverie.gpu_pool.worker.loaded_model import LoadedModel
from reverie.gpu_pool.worker.model_boundary import begin_session, carry_out, refusal
from reverie.gpu_pool.worker.outgoing import OutgoingMessages
from reverie.gpu_pool.worker.prompt_prefetch import (
    DirectInputs,
    PromptPrefetch,
)
from reverie.gpu_pool.worker.worker_session import WorkerSession
from reverie.models.contract.errors import DeviceLostError, SpecError
from reverie.models.contract.loop import Durable

logger = logging.getLogger(__name__)


class SessionTable:
    """Opens sessions, carries out what is asked of them, closes them."""

    def __init__(
        self,
        model: LoadedModel,
        outgoing: OutgoingMessages,
        heartbeat: Heartbeat,
        now_us: Callable[[], int],
        prompt_prefetch: PromptPrefetch,
    ) -> None:
        self._model = model
        self._outgoing = outgoing
        self._heartbeat = heartbeat
        self._now_us = now_us
        self._prompt_prefetch = prompt_prefetch
        self._sessions: dict[str, WorkerSession] = {}

    def __getitem__(self, session: str) -> WorkerSession:
        return self._sessions[session]

    def candidates(self) -> Sequence[Candidate]:
        """Return what could run now."""
        now_us = self._now_us()
        candidates: list[Candidate] = []
        for session, worker_session in self._sessions.items():
            if self._prompt_prefetch.holds(session):
                continue
            with self._heartbeat.unit([worker_session.serial]):
                candidates += worker_session.candidates(now_us)
            self._outgoing.emit(worker_session.take_emissions())
        return candidates

    def wait_s(self) -> float | None:
        """Return for how long nothing can run unless something comes in; None: until then."""
        times = [worker_session.wake_us for worker_session in self._sessions.values()]
        times.append(self._prompt_prefetch.wake_us)
        wakes = [time_us for time_us in times if time_us is not None]
        return max(0, min(wakes) - self._now_us()) / 1e6 if wakes else None

    def open(self, message: OpenSession) -> None:
        """Begin a session, or say why not."""
        if message.session in self._sessions:
            self._refuse(message, "exists", f"session {message.session} is open already")
            return
        origin = self._sessions.get(message.origin.session) if message.origin else None
        if message.origin and origin is None:
            self._refuse(message, "no_session", f"session {message.origin.session} is not open")
            return
        try:
            loops = self._model.loops(message.program)
            self._model.admission.admit(message.session, loops)
        except (AdmissionError, SpecError) as error:
            code = "full" if isinstance(error, AdmissionError) else "bad_program"
            self._refuse(message, code, str(error))
            return
        with self._heartbeat.unit([message.request]):
            worker_session = begin_session(self._model, message, origin)
        if isinstance(worker_session, Exception):
            self._model.admission.leave(message.session)
            self._refuse(message, *refusal(worker_session, "open_failed"))
            return
        self._sessions[message.session] = worker_session
        if any(loop.prompt_tokens for loop in loops):
            self._prompt_prefetch.open(message.session, worker_session.effective_controls)
        parted = worker_session.durables if origin is not None else ()
        self._done(message, worker_session.position, parted, worker_session)

    def close(self, message: CloseSession) -> None:
        """End a session; idempotent."""
        worker_session = self._sessions.pop(message.session, None)
        position = self._end(message.session, worker_session) if worker_session else Position(-1, 0)
        self._done(message, position)

    def close_all(self) -> None:
        """End every session."""
        self._prompt_prefetch.close()
        while self._sessions:
            self._end(*self._sessions.popitem())

    def deliver_prompts(self) -> None:
        """Pass on the prompts that have been read, and say which cannot be.

        Raises:
            DeviceLostError: the device has failed while one was being read.
        """
        if (lost := self._prompt_prefetch.lost) is not None:
            reading = self._sessions.get(lost.reading.session)
            with self._heartbeat.unit([reading.serial] if reading else []):
                raise DeviceLostError(lost.message)
        for delivered in self._prompt_prefetch.take():
            if worker_session := self._sessions.get(delivered.read.reading.session):
                self._outgoing.emit(delivered.superseded)
                self._outgoing.emit(worker_session.deliver(delivered))
                self._outgoing.emit(worker_session.take_emissions())

    def tell(self, message: OneWay) -> None:
        """Pass on what needs no answer; for a session that has gone it means nothing."""
        if worker_session := self._sessions.get(message.session):
            match message:
                case PushInputs():
                    self._push(worker_session, message)
                case ReleaseKeys():
                    worker_session.release_keys()
                case PlayheadMoved():
                    worker_session.seen(message, self._now_us())
                case SetWatched(watched=watched):
                    worker_session.watched(watched)
            self._outgoing.emit(worker_session.take_emissions())

    def ask(self, message: Request) -> None:
        """Carry out a request between two units, and answer it."""
        worker_session = self._sessions.get(message.session)
        if worker_session is None:
            self._refuse(message, "no_session", f"session {message.session} is not open")
            return
        if isinstance(message, ActNow):
            self._act_now(worker_session, message)
            return
        durables: tuple[Durable, ...] = ()
        # A reset, or a restore of a snapshot, may reach into the model.
        with self._heartbeat.unit([worker_session.serial]):
            answer = carry_out(worker_session, message, self._model.instance.device)
            if isinstance(message, TakeSnapshot) and isinstance(answer, Position):
                durables = worker_session.kept(message.name)
        if isinstance(message, Reset):
            self._prompt_prefetch.begin_again(message.session)
        self._outgoing.emit(worker_session.take_emissions())
        match answer:
            case Position():
                self._done(message, answer, durables, worker_session)
            case _:
                self._refuse(message, *refusal(answer, "request_failed"))

    def _end(self, session: str, worker_session: WorkerSession) -> Position:
        self._prompt_prefetch.forget(session)
        try:
            with self._heartbeat.unit([worker_session.serial]):
                position = worker_session.close()
        finally:
            self._model.admission.leave(session)
        self._outgoing.emit(worker_session.take_emissions())
        return position

    def _act_now(self, worker_session: WorkerSession, message: ActNow) -> None:
        """Take back what is unseen, and push controls that act in the chunk made next.

        A prompt that has to be read first takes nothing back: what is made meanwhile would not
        show it.
        """
        before = worker_session.state_chunks
        answer: Position | Exception = worker_session.position
        passed = self._prompt_prefetch.bring(
            message.session, worker_session.effective_controls, message.inputs
        )
        if len(passed.inputs) == len(message.inputs):
            with self._heartbeat.unit([worker_session.serial]):
                answer = carry_out(worker_session, message, self._model.instance.device)
        self._pass(worker_session, passed)
        self._outgoing.emit(worker_session.take_emissions())
        if isinstance(answer, Position):
            took_back = worker_session.state_chunks != before
            self._done(message, answer, (), worker_session, took_back=took_back)
        else:
            self._refuse(message, *refusal(answer, "request_failed"))

    def _push(self, worker_session: WorkerSession, message: PushInputs) -> None:
        passed = self._prompt_prefetch.bring(
            message.session, worker_session.effective_controls, message.inputs
        )
        self._pass(worker_session, passed)

    def _pass(self, worker_session: WorkerSession, passed: DirectInputs) -> None:
        self._outgoing.emit(passed.superseded)
        refused = worker_session.push(passed.inputs)
        if refused:
            # The session checks before it sends, so this is rare; but each input gets its receipt.
            session = worker_session.leading.session
            logger.warning("session %s: %d inputs that no loop takes", session, len(refused))
            self._outgoing.emit(refused)

    def _done(
        self,
        message: OpenSession | CloseSession | Request,
        position: Position,
        durables: tuple[Durable, ...] = (),
        worker_session: WorkerSession | None = None,
        *,
        took_back: bool = False,
    ) -> None:
        loop = message.loop if isinstance(message, Interrupt) else None
        self._outgoing.answer(
            RequestDone(
                message.request,
                message.session,
                position.chunk,
                position.pts_us,
                durables,
                worker_session.utterances if worker_session else {},
                worker_session.state_chunks if worker_session else {},
                worker_session.back_us(loop) if worker_session else 0,
                took_back,
            )
        )

    def _refuse(self, message: OpenSession | Request, code: str, text: str) -> None:
        self._outgoing.answer(RequestRefused(message.request, message.session, code, text))
