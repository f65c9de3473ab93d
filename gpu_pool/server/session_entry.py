"""A session as the pool sees it: where it is on its way through, and what it is told."""

import asyncio
import logging
from collections.abc import Callable
from enum import StrEnum

from reverie.gpu_pool.server.recovery_log import RecoveryLog
from reverie.gpu_pool.wire.errors import PoolError
from reverie.gpu_pool.wire.notifications import Notification, Sink
from reverie.gpu_pool.wire.start_request import StartRequest

logger = logging.getLogger(__name__)

_STRIKES_SOLE = 2
_STRIKES = 3

OnPosition = Callable[[int], None]
"""Called with the position in the queue, 1 being next, whenever it changes."""


class EntryState(StrEnum):
    """Where a session is. It moves down this list; only the loss of a worker leads back up.

    From OPENING to CLOSING it has one of the worker's slots: a slot whose session is closing
    may still be computing, and no other session gets it before the worker says that it has ended.
    """

    WAITING = "waiting"
    OPENING = "opening"
    OPEN = "open"
    AWAY = "away"
    """Its worker was lost, and it is to be recovered."""
    CLOSING = "closing"
    GONE = "gone"


class SessionEntry:
    """One session's record.

    Attributes:
        serial: what the worker's heartbeat calls it; new with every worker.
        opened: done when the session runs, or with the reason why it never will.
        gone: set when it has no slot and waits for none any more.
    """

    def __init__(self, opening: StartRequest, sink: Sink, on_position: OnPosition | None) -> None:
        self.opening = opening
        self.recovery_log = RecoveryLog(opening)
        self.state = EntryState.WAITING
        self.serial = 0
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # The task that waited may have been cancelled.
        self.opened.add_done_callback(lambda f: f.cancelled() or f.exception())
        self.gone = asyncio.Event()
        self._sink = sink
        self._on_position = on_position
        self._struck_at = 0
        self._strikes = 0

    @property
    def session(self) -> str:
        """The session's id."""
        return self.opening.session

    def tell(self, notice: Notification) -> None:
        """Tell the session, unless it has been released."""
        if self.state not in (EntryState.CLOSING, EntryState.GONE):
            self._call(self._sink, notice)

    def tell_position(self, position: int) -> None:
        """Tell the session its position in the queue."""
        if self._on_position:
            self._call(self._on_position, position)

    def enter(self) -> None:
        """Mark that it runs. The task that waited may have been cancelled, and leave again soon."""
        self.state = EntryState.OPEN
        if not self.opened.done():
            self.opened.set_result(None)

    def refuse(self, error: PoolError) -> None:
        """End the wait for an opening with an error."""
        if not self.opened.done():
            self.opened.set_exception(error)

    def leave(self) -> None:
        """Mark that it has no slot; a task that still waits for it to open was cancelled."""
        self.state = EntryState.GONE
        self.opened.cancel()
        self.gone.set()

    @property
    def suspected(self) -> bool:
        """Whether it may be what has ended a worker."""
        return self._strikes > 0

    def strike(self, poison_chunks: int, sole: bool) -> bool:
        """Note that its worker was lost while it was under suspicion.

        Args:
            poison_chunks: losses with at least so many chunks in between have nothing in common.
            sole: no other session is under suspicion.

        Returns:
            Whether it is to be given up: after the second loss in a row; the third one, when it
            has not been alone under suspicion.
        """
        chunks = self.recovery_log.chunks
        self._strikes = self._strikes + 1 if chunks - self._struck_at < poison_chunks else 1
        self._struck_at = chunks
        return self._strikes >= (_STRIKES_SOLE if sole else _STRIKES)

    def _call(self, what: Callable[..., None], argument: object) -> None:
        try:
            what(argument)
        except Exception:
            # The session boundary: what one session does wrong is not for the others to suffer.
            logger.exception("session %s failed to take what it was told", self.session)
