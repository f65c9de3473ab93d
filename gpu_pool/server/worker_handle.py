"""A session's hold on a worker."""

from reverie.gpu_pool.server.session_entry import SessionEntry
from reverie.gpu_pool.server.slot_manager import SlotManager
from reverie.gpu_pool.wire.messages import RequestDone
from reverie.gpu_pool.wire.session_messages import OneWay, Request


class WorkerHandle:
    """What a session sends to its worker. Used on the event loop only."""

    def __init__(self, slot_manager: SlotManager, entry: SessionEntry) -> None:
        """Made by `Pool.lease`."""
        self._slot_manager = slot_manager
        self._entry = entry

    @property
    def session(self) -> str:
        """The session's id."""
        return self._entry.session

    def send(self, message: OneWay) -> None:
        """Tell the worker something. Never blocks; nothing is lost when the worker is.

        After the release it means nothing.
        """
        self._slot_manager.traffic.tell(self._entry, message)

    async def ask(self, message: Request) -> RequestDone:
        """Ask the worker for something; `message.request` is numbered here, so give 0.

        Safe to cancel: the worker may still do what it was asked, and the pool takes notice of it.

        Raises:
            RequestRefusedError: nothing has changed.
            WorkerLostError: the worker was lost meanwhile, or is being replaced.
            AskTimeoutError: no answer within the limit; the worker is replaced.
            LeaseEndedError: the lease was released, or its session lost.
        """
        return await self._slot_manager.traffic.ask(self._entry, message)

    async def release(self) -> None:
        """End the session; return when no unit of it is running and its slot is free.

        The sink hears nothing from the first moment on. Safe to cancel, and to call again: the end
        has been asked for before the first await.
        """
        self._slot_manager.leave(self._entry)
        await self._entry.gone.wait()
