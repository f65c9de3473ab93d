"""The sessions of one model: which have a slot, which wait, what each has asked.

Synchronous and on the event loop only, so that between two awaits nothing is ever half done. The
supervisor says when there is a worker and when it is lost.
"""

import logging
from collections.abc import Callable
from copy import copy

from reverie.gpu_pool.server.pending_requests import PendingRequests
from reverie.gpu_pool.server.session_entry import EntryState, OnPosition, SessionEntry
from reverie.gpu_pool.server.session_lifecycle import SessionLifecycle
from reverie.gpu_pool.server.slot_shares import SlotShares
from reverie.gpu_pool.server.wait_queue import WaitQueue
from reverie.gpu_pool.server.worker_link import WorkerLink
from reverie.gpu_pool.server.worker_traffic import WorkerTraffic
from reverie.gpu_pool.wire.errors import (
    ModelUnavailableError,
    PoolError,
    PoolFullError,
    SessionExistsError,
    WorkerLostError,
)
from reverie.gpu_pool.wire.messages import ModelLoaded
from reverie.gpu_pool.wire.notifications import SessionLost, Sink, WorkerLost
from reverie.gpu_pool.wire.options import PoolOptions
from reverie.gpu_pool.wire.shares import Accounts
from reverie.gpu_pool.wire.start_request import StartRequest

logger = logging.getLogger(__name__)


class SlotManager:
    """Slots, queue and requests of one model.

    Attributes:
        slots: sessions that fit at once; 0 until the first worker has loaded.
        failure: why the model is not served any more; None while it is.
        line: the sessions that wait.
        traffic: what sessions and the worker send to each other.
    """

    def __init__(
        self,
        options: PoolOptions,
        on_trouble: Callable[[str], None],
        on_restored: Callable[[int], None],
    ) -> None:
        """Prepare without a worker.

        Args:
            options: the pool's.
            on_trouble: called with a reason when the worker must be replaced.
            on_restored: called with the number of sessions once all of a lost worker's are back.
        """
        self.slots = 0
        self.failure: PoolError | None = None
        self._entries: dict[str, SessionEntry] = {}
        self._shares = SlotShares(self._entries, options.give_way)
        self.line = WaitQueue(options.waiting_line, options.retry_after_s, self._shares.held)
        self._poison_chunks = options.poison_chunks
        self._pending_requests = PendingRequests(options.ask_limit_s, on_trouble)
        self.traffic = WorkerTraffic(self._entries, self._pending_requests)
        self._lifecycle = SessionLifecycle(
            self._pending_requests,
            on_out=self._drop,
            on_back=self._look_whether_all_are_back,
            on_refused=self._lose_session,
        )
        self._on_restored = on_restored
        self._lost = False  # a worker was, and not all of its sessions are recovered

    def __contains__(self, session: str) -> bool:
        return session in self._entries or session in self.line

    @property
    def ready(self) -> bool:
        """Whether there is a worker that serves."""
        return self.traffic.link is not None

    @property
    def busy(self) -> int:
        """Slots that are taken, those of closing sessions included."""
        return len(self._entries)

    # --- sessions ---

    def enter(
        self, opening: StartRequest, sink: Sink, on_position: OnPosition | None
    ) -> SessionEntry:
        """Give the session a slot, or a position in the queue.

        Raises:
            SessionExistsError: there is one of that id.
            ModelUnavailableError: the model is not served any more.
            PoolFullError: slots and line are taken; or there is no slot for one that does not wait.
        """
        if self.failure:
            raise copy(self.failure)
        if opening.session in self:
            raise SessionExistsError(f"session {opening.session} is live")
        entry = SessionEntry(opening, sink, on_position)
        if self._free and not self.line:
            self._let_in(entry)
        elif opening.origin is not None:
            raise PoolFullError("every slot is taken", self.line.retry_after_s, self.slots)
        else:
            cleared = self._has_leaver(opening.accounts)
            self.line.join(entry, beyond=cleared or self._shares.coming > len(self.line))
            self._clear_slots()
        return entry

    def expected_position(self, accounts: Accounts) -> int:
        """Return what `enter` would give a session now: 0 is a slot, else its queue position.

        Raises:
            ModelUnavailableError: the model is not served any more.
            PoolFullError: slots and line are taken.
        """
        if self.failure:
            raise copy(self.failure)
        if self._free and not self.line:
            return 0
        cleared = self._has_leaver(accounts)
        beyond = cleared or self._shares.coming > len(self.line)
        position = self.line.expected_position(accounts, beyond=beyond)
        return 0 if cleared and position == 1 else position

    def leave(self, entry: SessionEntry) -> None:
        """Begin to end a session wherever it is; `entry.gone` is set when it has ended."""
        match entry.state:
            case EntryState.WAITING:
                self.line.leave(entry)
                entry.leave()
            case EntryState.OPENING | EntryState.OPEN | EntryState.AWAY:
                self._close(entry)
            case EntryState.CLOSING | EntryState.GONE:
                pass

    @property
    def crowded(self) -> bool:
        """Whether sessions wait, and one of an owner without a session would have to as well."""
        if self._free > 0 or not len(self.line):
            return False
        return not self._has_leaver(("a newcomer",))

    # --- workers ---

    def begin(self, link: WorkerLink, loaded: ModelLoaded) -> None:
        """Serve with a new worker: recover its sessions, then open those that wait."""
        self.traffic.link = link
        self.slots = loaded.slots
        for entry in list(self._entries.values()):
            self._lifecycle.bring_back(link, entry)
        self._look_whether_all_are_back()
        self._admit()

    def lose(self, reason: str, suspects: frozenset[int]) -> None:
        """Handle the loss of the worker.

        Who was just about to begin, and is not to blame, is the next to begin.

        Args:
            reason: how it was lost.
            suspects: those whose step ran while the worker died by itself; no other session can
                have had a part in it.
        """
        self.traffic.link = None
        self._lost = True
        for entry in reversed(list(self._entries.values())):
            if entry.state is EntryState.OPENING and entry.serial not in suspects:
                entry.state = EntryState.WAITING
                del self._entries[entry.session]
                self.line.put_first(entry)
        self._pending_requests.fail_all(WorkerLostError(reason))
        for entry in list(self._entries.values()):
            if entry.state is EntryState.OPEN:
                entry.tell(WorkerLost(entry.session, reason))
                entry.state = EntryState.AWAY
            is_suspect = entry.serial in suspects
            if is_suspect and entry.strike(self._poison_chunks, sole=len(suspects) == 1):
                self._lose_session(entry, "worker_lost", f"again and again: {reason}")

    def give_up(self, code: str, error: PoolError) -> None:
        """End every session, for this reason."""
        self.failure = error
        self.traffic.link = None
        self.line.dissolve(error)
        self._pending_requests.fail_all(error)
        for entry in list(self._entries.values()):
            self._lose_session(entry, code, str(error))

    # --- inside ---

    @property
    def _free(self) -> int:
        return self.slots - len(self._entries) if self.traffic.link else 0

    def _admit(self) -> None:
        while self._free > 0 and (entry := self.line.next()):
            self._let_in(entry)
        self._clear_slots()
        self.line.tell()

    def _has_leaver(self, newcomer: Accounts) -> bool:
        """Tell whether a session would end for one of these accounts."""
        return self.traffic.link is not None and self._shares.leaver(newcomer) is not None

    def _clear_slots(self) -> None:
        if self.traffic.link is not None:
            self._shares.clear(self._free, self.line.turns, self._send_away)

    def _send_away(self, leaver: SessionEntry) -> None:
        logger.info("session %s gives way to an owner or address that holds less", leaver.session)
        text = "its owner or address held more slots than others that wait (give_way)"
        leaver.tell(SessionLost(leaver.session, "gave_way", text))
        leaver.refuse(PoolFullError(text, self.line.retry_after_s, self.slots))
        self._close(leaver)

    def _let_in(self, entry: SessionEntry) -> None:
        assert self.traffic.link is not None, "only a worker has free slots"
        self._entries[entry.session] = entry
        self._lifecycle.let_in(self.traffic.link, entry)

    def _close(self, entry: SessionEntry) -> None:
        if self.traffic.link is None:
            self._drop(entry)
        else:
            self._lifecycle.let_out(self.traffic.link, entry)

    def _drop(self, entry: SessionEntry) -> None:
        self._entries.pop(entry.session, None)
        entry.leave()
        self._look_whether_all_are_back()
        self._admit()

    def _look_whether_all_are_back(self) -> None:
        states = [entry.state for entry in self._entries.values()]
        if self._lost and self.traffic.link and EntryState.AWAY not in states:
            self._lost = False
            self._on_restored(states.count(EntryState.OPEN))

    def _lose_session(self, entry: SessionEntry, code: str, message: str) -> None:
        entry.tell(SessionLost(entry.session, code, message))
        entry.refuse(ModelUnavailableError(message))
        self._drop(entry)
