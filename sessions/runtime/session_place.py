"""A session's place in the pool: asked for, waited for, and given back."""

import asyncio
import logging

from reverie.gpu_pool.wire.errors import PoolError, PoolFullError
from reverie.gpu_pool.wire.shares import Accounts
from reverie.gpu_pool.wire.start_request import ForkOrigin, StartRequest
from reverie.sessions.backend.session_backend import SessionBackend
from reverie.sessions.protocol.events import RequestQueued, RequestStarted
from reverie.sessions.runtime.event_relay import EventRelay
from reverie.sessions.runtime.session_context import SessionContext
from reverie.sessions.state.session_phases import Trigger

logger = logging.getLogger(__name__)


class SessionPlace:
    """The place of one session.

    Attributes:
        refused: why there is none, when the pool and its queue are full.
    """

    def __init__(
        self,
        context: SessionContext,
        backend: SessionBackend,
        event_relay: EventRelay,
        close_s: float,
        origin: ForkOrigin | None,
        accounts: Accounts,
    ) -> None:
        """Ask for nothing yet: `take` does.

        Args:
            context: the session's parts.
            backend: where places are.
            event_relay: hears what the session's worker emits.
            close_s: how long giving the place back may take.
            origin: where it forks from another session; None: it is new.
            accounts: what the place is counted under.
        """
        self.refused: PoolFullError | None = None
        self._context = context
        self._backend = backend
        self._event_relay = event_relay
        self._close_s = close_s
        self._origin = origin
        self._accounts = accounts
        self._settled = asyncio.Event()

    async def take(self) -> None:
        """Take a place; return once the session has it."""
        context, state = self._context, self._context.state
        opening = StartRequest(
            session=state.session,
            model=state.model,
            program=state.program,
            seed=state.seed,
            prompt=state.prompt.whole,
            parameters=dict(state.parameters),
            stop=state.stop,
            origin=self._origin,
            accounts=self._accounts,
        )
        lease = await self._backend.lease(opening, self._event_relay, self._queued)
        context.link.connect(lease)
        if state.over:
            return  # it ended as it got the place; `run` gives that back
        state.queue_position = None
        state.move(Trigger.START)
        if not len(context.attached):
            state.move(Trigger.DETACH)
        context.attached.tell(RequestStarted())
        context.views.changed()
        self._settled.set()

    async def settled(self) -> None:
        """Return once the session has its place, waits for one, or has ended.

        Raises:
            PoolFullError: there is no place, and the wait queue is full.
        """
        await self._settled.wait()
        if self.refused is not None:
            raise self.refused

    def settle(self) -> None:
        """Let `settled` return: the session has ended."""
        self._settled.set()

    async def give_back(self) -> None:
        """Give the place back, if the session has one."""
        session = self._context.state.session
        try:
            async with asyncio.timeout(self._close_s):
                await self._context.link.release()
        except TimeoutError:
            logger.error("session %s: its place was not given back in time", session)
        except PoolError as error:
            logger.warning("session %s: giving its place back failed: %s", session, error)

    def _queued(self, position: int) -> None:
        if self._context.state.over:
            return
        self._context.state.move(Trigger.ENQUEUE)
        self._context.state.queue_position = position
        self._context.attached.tell(RequestQueued(position=position))
        self._context.views.changed()
        self._settled.set()
