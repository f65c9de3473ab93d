"""What the sessions of one model and the worker that serves them send to each other."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from reverie.engine.emissions import Emission, SnapshotOut
from reverie.gpu_pool.server.pending_requests import PendingRequests
from reverie.gpu_pool.server.session_entry import EntryState, SessionEntry
from reverie.gpu_pool.server.worker_link import WorkerLink
from reverie.gpu_pool.wire.errors import LeaseEndedError, WorkerLostError
from reverie.gpu_pool.wire.messages import EmissionMessage, FromWorker, RequestDone, RequestRefused
from reverie.gpu_pool.wire.session_messages import ActNow, OneWay, PushInputs, Request


class WorkerTraffic:
    """Passes messages on in both directions. Event loop only, never waits.

    Attributes:
        link: the worker that serves; None while there is none.
    """

    def __init__(self, entries: Mapping[str, SessionEntry], requests: PendingRequests) -> None:
        """Begin without a worker.

        Args:
            entries: the sessions that have a slot, as they are at any time.
            requests: where requests wait for their answers.
        """
        self.link: WorkerLink | None = None
        self._entries = entries
        self._pending_requests = requests

    def tell(self, entry: SessionEntry, message: OneWay) -> None:
        """Pass a message on; while there is no worker it is remembered for the next one."""
        if entry.state in (EntryState.OPEN, EntryState.AWAY):
            entry.recovery_log.sent(message)
            if self.link:
                self.link.send(message)

    def ask(self, entry: SessionEntry, message: Request) -> asyncio.Future[RequestDone]:
        """Pass a request on and return its answer to come.

        Raises:
            WorkerLostError: the worker is being replaced.
            LeaseEndedError: the session has been released or lost.
            RequestRefusedError: what is asked for was lost with an earlier worker.
        """
        if isinstance(message, ActNow) and entry.state in (EntryState.OPEN, EntryState.AWAY):
            # As with `tell`: a worker that follows hears of the controls.
            entry.recovery_log.sent(PushInputs(message.session, message.inputs))
        if entry.state is EntryState.AWAY:
            raise WorkerLostError("the worker is being replaced")
        if entry.state is not EntryState.OPEN or self.link is None:
            raise LeaseEndedError(f"session {entry.session} is {entry.state}")
        entry.recovery_log.check(message)
        question = self._pending_requests.put(
            type(message).__name__,
            entry.session,
            on_done=partial(entry.recovery_log.answered, message),
        )
        self.link.send(replace(message, request=question.number))
        return question.answer

    def received(self, message: FromWorker) -> None:
        """Take a message of the worker that serves."""
        match message:
            case RequestDone() | RequestRefused():
                self._pending_requests.answer(message)
            case EmissionMessage(emission=emission):
                self._heard(emission)
            case _:
                raise AssertionError(f"{type(message).__name__} from a worker that serves")

    def _heard(self, emission: Emission) -> None:
        entry = self._entries.get(emission.session)
        if entry is None or not entry.recovery_log.heard(emission):
            return
        if not isinstance(emission, SnapshotOut):
            entry.tell(emission)
