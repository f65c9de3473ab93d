"""A session's way into a worker, back into another one after a loss, and out."""

from collections.abc import Callable
from functools import partial

from reverie.engine.errors import WeightsChangedError
from reverie.gpu_pool.server.pending_requests import PendingRequests
from reverie.gpu_pool.server.session_entry import EntryState, SessionEntry
from reverie.gpu_pool.server.worker_link import WorkerLink
from reverie.gpu_pool.wire.errors import PoolError, RequestRefusedError
from reverie.gpu_pool.wire.messages import RequestDone
from reverie.gpu_pool.wire.notifications import SessionRecovered
from reverie.gpu_pool.wire.session_messages import CloseSession


class SessionLifecycle:
    """Asks the worker to open, recover and close sessions. Event loop only, never waits."""

    def __init__(
        self,
        pending_requests: PendingRequests,
        on_out: Callable[[SessionEntry], None],
        on_back: Callable[[], None],
        on_refused: Callable[[SessionEntry, str, str], None],
    ) -> None:
        """Prepare without a worker.

        Args:
            questions: where requests wait for their answers.
            on_out: called with an entry that has no slot in the worker any more.
            on_back: called when one is back after a loss.
            on_refused: called with one that cannot come back, a code and a reason.
        """
        self._pending_requests = pending_requests
        self._on_out = on_out
        self._on_back = on_back
        self._on_refused = on_refused

    def let_in(self, link: WorkerLink, entry: SessionEntry) -> None:
        """Begin a session in the worker."""
        entry.state = EntryState.OPENING
        question = self._pending_requests.put(
            "an opening",
            entry.session,
            on_done=partial(self._opened, entry),
            on_failed=partial(self._not_opened, entry),
        )
        entry.serial = question.number
        link.send(*entry.recovery_log.recovery_plan().numbered(question.number, alone=False))

    def let_out(self, link: WorkerLink, entry: SessionEntry) -> None:
        """End a session in the worker."""
        entry.state = EntryState.CLOSING
        question = self._pending_requests.put(
            "a closing",
            entry.session,
            on_done=lambda _: self._on_out(entry),
            on_failed=lambda _: self._on_out(entry),
        )
        link.send(CloseSession(question.number, entry.session))

    def bring_back(self, link: WorkerLink, entry: SessionEntry) -> None:
        """Recover a session whose worker was lost."""
        entry.state = EntryState.AWAY
        plan = entry.recovery_log.recovery_plan()
        question = self._pending_requests.put(
            "a recovery",
            entry.session,
            on_done=partial(self._brought_back, entry, plan.chunk),
            on_failed=partial(self._not_brought_back, entry),
        )
        entry.serial = question.number
        link.send(*plan.numbered(question.number, alone=entry.suspected))

    def _opened(self, entry: SessionEntry, done: RequestDone) -> None:
        if entry.state is EntryState.OPENING:
            entry.recovery_log.opened(done)
            entry.enter()

    def _not_opened(self, entry: SessionEntry, error: PoolError) -> None:
        if entry.state is EntryState.OPENING:
            entry.refuse(error)
            self._on_out(entry)

    def _brought_back(self, entry: SessionEntry, chunk: int, done: RequestDone) -> None:
        if entry.state is EntryState.AWAY:
            entry.state = EntryState.OPEN
            entry.tell(SessionRecovered(entry.session, chunk, done.pts_us))
            self._on_back()

    def _not_brought_back(self, entry: SessionEntry, error: PoolError) -> None:
        # A worker that is lost on the way is followed by another one; a refusal is for good.
        if entry.state is EntryState.AWAY and isinstance(error, RequestRefusedError):
            code = error.code if error.code == WeightsChangedError.code else "worker_lost"
            self._on_refused(entry, code, str(error))
