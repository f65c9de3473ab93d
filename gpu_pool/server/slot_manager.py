"""The sessions of one model: which have a slot, which wait, what each has asked.

Synchronous and on the event loop only, so that between two awaits nothing is ever half done. The
supervisor says when there is a worker and when it is lost.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial

from reverie.engine.emissions import Emission, SnapshotOut
from reverie.gpu_pool.server.pending_requests import PendingRequests
from reverie.gpu_pool.server.session_entry import EntryState, OnPosition, SessionEntry
from reverie.gpu_pool.server.session_lifecycle import SessionLifecycle
from reverie.gpu_pool.server.wait_queue import WaitQueue
from reverie.gpu_pool.server.worker_link import WorkerLink
from reverie.gpu_pool.wire.errors import (
    LeaseEndedError,
    ModelUnavailableError,
    PoolError,
    PoolFullError,
    SessionExistsError,
    WorkerLostError,
)
from reverie.gpu_pool.wire.messages import (
    Done,
    Emitted,
    FromWorker,
    ModelLoaded,
    OneWay,
    Refused,
    Request,
)
from reverie.gpu_pool.wire.notifications import SessionLost, Sink, WorkerLost
from reverie.gpu_pool.wire.options import PoolOptions
from reverie.gpu_pool.wire.shares import Accounts, held_by, who_gives_way
from reverie.gpu_pool.wire.start_request import StartRequest

logger = logging.getLogger(__name__)


class SlotManager:
    """Slots, queue and requests of one model.

    Attributes:
        slots: sessions that fit at once; 0 until the first worker has loaded.
        failure: why the model is not served any more; None while it is.
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
        self.line = WaitQueue(options.waiting_line, options.retry_after_s, self._held)
        self._give_way = options.give_way
        self._poison_chunks = options.poison_chunks
        self._pending_requests = PendingRequests(options.ask_limit_s, on_trouble)
        self._lifecycle = SessionLifecycle(
            self._pending_requests,
            on_out=self._drop,
            on_back=self._look_whether_all_are_back,
            on_refused=self._lose_session,
        )
        self._on_restored = on_restored
        self._lost = False  # a worker was, and not all of its sessions are recovered
        self._entries: dict[str, SessionEntry] = {}
        self._link: WorkerLink | None = None

    def __contains__(self, session: str) -> bool:
        return session in self._entries or session in self.line

    @property
    def ready(self) -> bool:
        """Whether there is a worker that serves."""
        return self._link is not None

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
            cleared = self._who_gives_way(opening.accounts, self._held()) is not None
            self.line.join(entry, beyond=cleared or self._coming > len(self.line))
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
        cleared = self._who_gives_way(accounts, self._held()) is not None
        beyond = cleared or self._coming > len(self.line)
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

    def tell(self, entry: SessionEntry, message: OneWay) -> None:
        """Pass a message on; while there is no worker it is remembered for the next one."""
        if entry.state in (EntryState.OPEN, EntryState.AWAY):
            entry.recovery_log.sent(message)
            if self._link:
                self._link.send(message)

    def ask(self, entry: SessionEntry, message: Request) -> asyncio.Future[Done]:
        """Pass a request on and return its answer to come.

        Raises:
            WorkerLostError: the worker is being replaced.
            LeaseEndedError: the session has been released or lost.
            RequestRefusedError: what is asked for was lost with an earlier worker.
        """
        if entry.state is EntryState.AWAY:
            raise WorkerLostError("the worker is being replaced")
        if entry.state is not EntryState.OPEN or self._link is None:
            raise LeaseEndedError(f"session {entry.session} is {entry.state}")
        entry.recovery_log.check(message)
        question = self._pending_requests.put(
            type(message).__name__,
            entry.session,
            on_done=partial(entry.recovery_log.answered, message),
        )
        self._link.send(replace(message, request=question.number))
        return question.answer

    @property
    def crowded(self) -> bool:
        """Whether sessions wait, and one of an owner without a session would have to as well."""
        if self._free > 0 or not len(self.line):
            return False
        return self._who_gives_way(("a newcomer",), self._held()) is None

    # --- workers ---

    def begin(self, link: WorkerLink, loaded: ModelLoaded) -> None:
        """Serve with a new worker: recover its sessions, then open those that wait."""
        self._link = link
        self.slots = loaded.slots
        for entry in list(self._entries.values()):
            self._lifecycle.bring_back(link, entry)
        self._look_whether_all_are_back()
        self._admit()

    def received(self, message: FromWorker) -> None:
        """Take a message of the worker that serves."""
        match message:
            case Done() | Refused():
                self._pending_requests.answer(message)
            case Emitted(emission=emission):
                self._heard(emission)
            case _:
                raise AssertionError(f"{type(message).__name__} from a worker that serves")

    def lose(self, reason: str, suspects: frozenset[int]) -> None:
        """Handle the loss of the worker.

        Who was just about to begin, and is not to blame, is the next to begin.

        Args:
            reason: how it was lost.
            suspects: those whose step ran while the worker died by itself; no other session can
                have had a part in it.
        """
        self._link = None
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
        self._link = None
        self.line.dissolve(error)
        self._pending_requests.fail_all(error)
        for entry in list(self._entries.values()):
            self._lose_session(entry, code, str(error))

    # --- inside ---

    @property
    def _free(self) -> int:
        return self.slots - len(self._entries) if self._link else 0

    @property
    def _coming(self) -> int:
        """Slots that will be free as soon as the worker says so."""
        return sum(each.state is EntryState.CLOSING for each in self._entries.values())

    def _admit(self) -> None:
        while self._free > 0 and (entry := self.line.next()):
            self._let_in(entry)
        self._clear_slots()
        self.line.tell()

    def _clear_slots(self) -> None:
        """Take slots from accounts that hold far more than others, for as many sessions as wait."""
        given, held = self._free + self._coming, self._held()
        for place, (_, waiting) in enumerate(self.line.turns):
            accounts = waiting.opening.accounts
            if place >= given:
                leaver = self._who_gives_way(accounts, held)
                if leaver is None:
                    return
                held.subtract(leaver.opening.accounts)
                self._send_away(leaver)
            held.update(accounts)

    def _who_gives_way(self, newcomer: Accounts, held: Counter[str]) -> SessionEntry | None:
        """Return the session that ends for a newcomer; those without a viewer go first."""
        if self._link is None or self._give_way == "none":
            return None
        staying = [each for each in self._entries.values() if each.state is not EntryState.CLOSING]
        newest_first = [each for each in reversed(staying) if not each.recovery_log.watched]
        if self._give_way == "all":
            newest_first += [each for each in reversed(staying) if each.recovery_log.watched]
        holders = [(each, each.opening.accounts) for each in newest_first]
        return who_gives_way(holders, newcomer, held)

    def _send_away(self, leaver: SessionEntry) -> None:
        logger.info("session %s gives way to an owner or address that holds less", leaver.session)
        text = "its owner or address held more slots than others that wait (give_way)"
        leaver.tell(SessionLost(leaver.session, "gave_way", text))
        leaver.refuse(PoolFullError(text, self.line.retry_after_s, self.slots))
        self._close(leaver)

    def _held(self) -> Counter[str]:
        """Return how many slots each account holds, without those that it is giving back."""
        entries = self._entries.values()
        return held_by(
            each.opening.accounts for each in entries if each.state is not EntryState.CLOSING
        )

    def _let_in(self, entry: SessionEntry) -> None:
        assert self._link is not None, "only a worker has free slots"
        self._entries[entry.session] = entry
        self._lifecycle.let_in(self._link, entry)

    def _close(self, entry: SessionEntry) -> None:
        if self._link is None:
            self._drop(entry)
        else:
            self._lifecycle.let_out(self._link, entry)

    def _drop(self, entry: SessionEntry) -> None:
        self._entries.pop(entry.session, None)
        entry.leave()
        self._look_whether_all_are_back()
        self._admit()

    def _look_whether_all_are_back(self) -> None:
        states = [entry.state for entry in self._entries.values()]
        if self._lost and self._link and EntryState.AWAY not in states:
            self._lost = False
            self._on_restored(states.count(EntryState.OPEN))

    def _lose_session(self, entry: SessionEntry, code: str, message: str) -> None:
        entry.tell(SessionLost(entry.session, code, message))
        entry.refuse(ModelUnavailableError(message))
        self._drop(entry)

    def _heard(self, emission: Emission) -> None:
        entry = self._entries.get(emission.session)
        if entry is None or not entry.recovery_log.heard(emission):
            return
        if not isinstance(emission, SnapshotOut):
            entry.tell(emission)
