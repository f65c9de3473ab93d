"""A session's hold on a worker."""

from reverie.gpu_pool.messages import Asked, Done, Told
from reverie.gpu_pool.occupant import Occupant
from reverie.gpu_pool.roster import Roster


class Lease:
    """What a session sends to its worker. Used on the event loop only."""

    def __init__(self, roster: Roster, occupant: Occupant) -> None:
        """Made by `Pool.lease`."""
        self._roster = roster
        self._occupant = occupant

    @property
    def session(self) -> str:
        """The session's id."""
        return self._occupant.session

    def send(self, message: Told) -> None:
        """Tell the worker something. Never blocks; nothing is lost when the worker is.

        After the release it means nothing.
        """
        self._roster.tell(self._occupant, message)

    async def ask(self, message: Asked) -> Done:
        """Ask the worker for something; `message.request` is numbered here, so give 0.

        Safe to cancel: the worker may still do what it was asked, and the pool takes notice of it.

        Raises:
            RequestRefusedError: nothing has changed.
            WorkerLostError: the worker was lost meanwhile, or is being replaced.
            AskTimeoutError: no answer within the limit; the worker is replaced.
            LeaseEndedError: the lease was released, or its session lost.
        """
        return await self._roster.ask(self._occupant, message)

    async def release(self) -> None:
        """End the session; return when no unit of it is running and its slot is free.

        The sink hears nothing from the first moment on. Safe to cancel, and to call again: the end
        has been asked for before the first await.
        """
        self._roster.leave(self._occupant)
        await self._occupant.gone.wait()
