"""The sessions of one model: who has a slot, who waits, what each has asked.

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
from reverie.gpu_pool.doorway import Doorway
from reverie.gpu_pool.errors import (
    LeaseEndedError,
    ModelUnavailableError,
    PoolError,
    PoolFullError,
    SessionExistsError,
    WorkerLostError,
)
from reverie.gpu_pool.line import WaitingLine
from reverie.gpu_pool.link import WorkerLink
from reverie.gpu_pool.messages import (
    Asked,
    Done,
    Emitted,
    FromWorker,
    Loaded,
    Refused,
    Told,
)
from reverie.gpu_pool.notices import SessionLost, Sink, WorkerLost
from reverie.gpu_pool.occupant import Occupant, OnPosition, Place
from reverie.gpu_pool.opening import Opening
from reverie.gpu_pool.options import PoolOptions
from reverie.gpu_pool.questions import Questions
from reverie.gpu_pool.shares import Accounts, held_by, who_gives_way

logger = logging.getLogger(__name__)


class Roster:
    """Slots, waiting line and requests of one model.

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
        """Hold nobody yet.

        Args:
            options: the pool's.
            on_trouble: called with a reason when the worker must be replaced.
            on_restored: called with their number when all sessions of a lost worker go on that can.
        """
        self.slots = 0
        self.failure: PoolError | None = None
        self.line = WaitingLine(options.waiting_line, options.retry_after_s, self._held)
        self._give_way = options.give_way
        self._poison_chunks = options.poison_chunks
        self._questions = Questions(options.ask_limit_s, on_trouble)
        self._doorway = Doorway(
            self._questions,
            on_out=self._drop,
            on_back=self._look_whether_all_are_back,
            on_refused=self._lose_session,
        )
        self._on_restored = on_restored
        self._lost = False  # a worker was, and not all who were there are back
        self._occupants: dict[str, Occupant] = {}
        self._link: WorkerLink | None = None

    def __contains__(self, session: str) -> bool:
        return session in self._occupants or session in self.line

    @property
    def ready(self) -> bool:
        """Whether there is a worker that serves."""
        return self._link is not None

    @property
    def busy(self) -> int:
        """Slots that are taken, those of closing sessions included."""
        return len(self._occupants)

    # --- sessions ---

    def enter(self, opening: Opening, sink: Sink, on_position: OnPosition | None) -> Occupant:
        """Give the session a slot, or a place in the waiting line.

        Raises:
            SessionExistsError: there is one of that id.
            ModelUnavailableError: the model is not served any more.
            PoolFullError: slots and line are taken; or there is no slot for one that does not wait.
        """
        if self.failure:
            raise copy(self.failure)
        if opening.session in self:
            raise SessionExistsError(f"session {opening.session} is live")
        occupant = Occupant(opening, sink, on_position)
        if self._free and not self.line:
            self._let_in(occupant)
        elif opening.origin is not None:
            raise PoolFullError("every place is taken", self.line.retry_after_s, self.slots)
        else:
            cleared = self._who_gives_way(opening.accounts, self._held()) is not None
            self.line.join(occupant, beyond=cleared or self._coming > len(self.line))
            self._clear_slots()
        return occupant

    def leave(self, occupant: Occupant) -> None:
        """Begin to end a session wherever it is; `occupant.gone` is set when it is over."""
        match occupant.place:
            case Place.WAITING:
                self.line.leave(occupant)
                occupant.leave()
            case Place.OPENING | Place.OPEN | Place.AWAY:
                self._close(occupant)
            case Place.CLOSING | Place.GONE:
                pass

    def tell(self, occupant: Occupant, message: Told) -> None:
        """Pass a message on; while there is no worker it is remembered for the next one."""
        if occupant.place in (Place.OPEN, Place.AWAY):
            occupant.remembered.sent(message)
            if self._link:
                self._link.send(message)

    def ask(self, occupant: Occupant, message: Asked) -> asyncio.Future[Done]:
        """Pass a request on and return its answer to come.

        Raises:
            WorkerLostError: the worker is being replaced.
            LeaseEndedError: the session has been released or lost.
            RequestRefusedError: what is asked for was lost with an earlier worker.
        """
        if occupant.place is Place.AWAY:
            raise WorkerLostError("the worker is being replaced")
        if occupant.place is not Place.OPEN or self._link is None:
            raise LeaseEndedError(f"session {occupant.session} is {occupant.place}")
        occupant.remembered.check(message)
        question = self._questions.put(
            type(message).__name__,
            occupant.session,
            on_done=partial(occupant.remembered.answered, message),
        )
        self._link.send(replace(message, request=question.number))
        return question.answer

    @property
    def crowded(self) -> bool:
        """Whether sessions wait, and one of somebody who holds nothing yet would have to, too."""
        if self._free > 0 or not len(self.line):
            return False
        return self._who_gives_way(("a newcomer",), self._held()) is None

    # --- workers ---

    def begin(self, link: WorkerLink, loaded: Loaded) -> None:
        """Serve with a new worker: bring back who was there, then let in who waits."""
        self._link = link
        self.slots = loaded.slots
        for occupant in list(self._occupants.values()):
            self._doorway.bring_back(link, occupant)
        self._look_whether_all_are_back()
        self._admit()

    def received(self, message: FromWorker) -> None:
        """Take a message of the worker that serves."""
        match message:
            case Done() | Refused():
                self._questions.answer(message)
            case Emitted(emission=emission):
                self._heard(emission)
            case _:
                raise AssertionError(f"{type(message).__name__} from a worker that serves")

    def lose(self, reason: str, suspects: frozenset[int]) -> None:
        """Go on without a worker.

        Who was just about to begin, and is not to blame, is the next to begin.

        Args:
            reason: how it was lost.
            suspects: those whose step ran while the worker died by itself; nobody else can have
                had a part in it.
        """
        self._link = None
        self._lost = True
        for occupant in reversed(list(self._occupants.values())):
            if occupant.place is Place.OPENING and occupant.serial not in suspects:
                occupant.place = Place.WAITING
                del self._occupants[occupant.session]
                self.line.put_first(occupant)
        self._questions.fail_all(WorkerLostError(reason))
        for occupant in list(self._occupants.values()):
            if occupant.place is Place.OPEN:
                occupant.tell(WorkerLost(occupant.session, reason))
                occupant.place = Place.AWAY
            is_suspect = occupant.serial in suspects
            if is_suspect and occupant.strike(self._poison_chunks, sole=len(suspects) == 1):
                self._lose_session(occupant, "worker_lost", f"again and again: {reason}")

    def give_up(self, code: str, error: PoolError) -> None:
        """Serve nobody any more, for this reason."""
        self.failure = error
        self._link = None
        self.line.dissolve(error)
        self._questions.fail_all(error)
        for occupant in list(self._occupants.values()):
            self._lose_session(occupant, code, str(error))

    # --- inside ---

    @property
    def _free(self) -> int:
        return self.slots - len(self._occupants) if self._link else 0

    @property
    def _coming(self) -> int:
        """Slots that will be free as soon as the worker says so."""
        return sum(each.place is Place.CLOSING for each in self._occupants.values())

    def _admit(self) -> None:
        while self._free > 0 and (occupant := self.line.next()):
            self._let_in(occupant)
        self._clear_slots()
        self.line.tell()

    def _clear_slots(self) -> None:
        """Have those who hold far more than others give slots up, for as many as wait for one."""
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

    def _who_gives_way(self, newcomer: Accounts, held: Counter[str]) -> Occupant | None:
        """Return the session that ends for a newcomer; those that nobody watches go first."""
        if self._link is None or self._give_way == "none":
            return None
        staying = [each for each in self._occupants.values() if each.place is not Place.CLOSING]
        newest_first = [each for each in reversed(staying) if not each.remembered.watched]
        if self._give_way == "all":
            newest_first += [each for each in reversed(staying) if each.remembered.watched]
        holders = [(each, each.opening.accounts) for each in newest_first]
        return who_gives_way(holders, newcomer, held)

    def _send_away(self, leaver: Occupant) -> None:
        logger.info("session %s gives way to somebody who holds less", leaver.session)
        text = "its owner or address held more places than others who wait (give_way)"
        leaver.tell(SessionLost(leaver.session, "gave_way", text))
        leaver.refuse(PoolFullError(text, self.line.retry_after_s, self.slots))
        self._close(leaver)

    def _held(self) -> Counter[str]:
        """Return how many slots each account holds, without those that it is giving back."""
        occupants = self._occupants.values()
        return held_by(
            each.opening.accounts for each in occupants if each.place is not Place.CLOSING
        )

    def _let_in(self, occupant: Occupant) -> None:
        assert self._link is not None, "only a worker has free slots"
        self._occupants[occupant.session] = occupant
        self._doorway.let_in(self._link, occupant)

    def _close(self, occupant: Occupant) -> None:
        if self._link is None:
            self._drop(occupant)
        else:
            self._doorway.let_out(self._link, occupant)

    def _drop(self, occupant: Occupant) -> None:
        self._occupants.pop(occupant.session, None)
        occupant.leave()
        self._look_whether_all_are_back()
        self._admit()

    def _look_whether_all_are_back(self) -> None:
        places = [occupant.place for occupant in self._occupants.values()]
        if self._lost and self._link and Place.AWAY not in places:
            self._lost = False
            self._on_restored(places.count(Place.OPEN))

    def _lose_session(self, occupant: Occupant, code: str, message: str) -> None:
        occupant.tell(SessionLost(occupant.session, code, message))
        occupant.refuse(ModelUnavailableError(message))
        self._drop(occupant)

    def _heard(self, emission: Emission) -> None:
        occupant = self._occupants.get(emission.session)
        if occupant is None or not occupant.remembered.heard(emission):
            return
        if not isinstance(emission, SnapshotOut):
            occupant.tell(emission)
