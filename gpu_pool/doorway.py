"""A session's way into a worker, back into another one after a loss, and out."""

from collections.abc import Callable
from functools import partial

from reverie.engine.errors import WeightsChangedError
from reverie.gpu_pool.errors import PoolError, RequestRefusedError
from reverie.gpu_pool.link import WorkerLink
from reverie.gpu_pool.messages import CloseSession, Done
from reverie.gpu_pool.notices import Recovered
from reverie.gpu_pool.occupant import Occupant, Place
from reverie.gpu_pool.questions import Questions


class Doorway:
    """Asks the worker to take sessions in and to let them go. Event loop only, never waits."""

    def __init__(
        self,
        questions: Questions,
        on_out: Callable[[Occupant], None],
        on_back: Callable[[], None],
        on_refused: Callable[[Occupant, str, str], None],
    ) -> None:
        """Let nobody through yet.

        Args:
            questions: where requests wait for their answers.
            on_out: called with an occupant that takes up nothing in the worker any more.
            on_back: called when one is back after a loss.
            on_refused: called with one that cannot come back, a code and a reason.
        """
        self._questions = questions
        self._on_out = on_out
        self._on_back = on_back
        self._on_refused = on_refused

    def let_in(self, link: WorkerLink, occupant: Occupant) -> None:
        """Begin a session in the worker."""
        occupant.place = Place.OPENING
        question = self._questions.put(
            "an opening",
            occupant.session,
            on_done=partial(self._opened, occupant),
            on_failed=partial(self._not_opened, occupant),
        )
        occupant.serial = question.number
        link.send(*occupant.remembered.revival().numbered(question.number, alone=False))

    def let_out(self, link: WorkerLink, occupant: Occupant) -> None:
        """End a session in the worker."""
        occupant.place = Place.CLOSING
        question = self._questions.put(
            "a closing",
            occupant.session,
            on_done=lambda _: self._on_out(occupant),
            on_failed=lambda _: self._on_out(occupant),
        )
        link.send(CloseSession(question.number, occupant.session))

    def bring_back(self, link: WorkerLink, occupant: Occupant) -> None:
        """Go on with a session whose worker was lost."""
        occupant.place = Place.AWAY
        revival = occupant.remembered.revival()
        question = self._questions.put(
            "a recovery",
            occupant.session,
            on_done=partial(self._brought_back, occupant, revival.chunk),
            on_failed=partial(self._not_brought_back, occupant),
        )
        occupant.serial = question.number
        link.send(*revival.numbered(question.number, alone=occupant.suspected))

    def _opened(self, occupant: Occupant, done: Done) -> None:
        if occupant.place is Place.OPENING:
            occupant.remembered.opened(done)
            occupant.enter()

    def _not_opened(self, occupant: Occupant, error: PoolError) -> None:
        if occupant.place is Place.OPENING:
            occupant.refuse(error)
            self._on_out(occupant)

    def _brought_back(self, occupant: Occupant, chunk: int, done: Done) -> None:
        if occupant.place is Place.AWAY:
            occupant.place = Place.OPEN
            occupant.tell(Recovered(occupant.session, chunk, done.pts_us))
            self._on_back()

    def _not_brought_back(self, occupant: Occupant, error: PoolError) -> None:
        # A worker that is lost on the way is followed by another one; a refusal is for good.
        if occupant.place is Place.AWAY and isinstance(error, RequestRefusedError):
            code = error.code if error.code == WeightsChangedError.code else "worker_lost"
            self._on_refused(occupant, code, str(error))
