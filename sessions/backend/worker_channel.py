"""A session's channel to its loop: the lease, and what was sent before there was one.

The pool repeats to a new worker what the lost one had been told; nothing is sent twice from here.
"""

import asyncio

from reverie.engine.inputs import ControlInput
from reverie.gpu_pool.wire.errors import (
    AskTimeoutError,
    PoolError,
    RequestRefusedError,
    WorkerLostError,
)
from reverie.gpu_pool.wire.messages import RequestDone
from reverie.gpu_pool.wire.session_messages import (
    OneWay,
    PlayheadMoved,
    PushInputs,
    ReleaseKeys,
    Request,
    SetWatched,
)
from reverie.sessions.backend import public_errors
from reverie.sessions.backend.control_receipts import ControlReceipts, Tell
from reverie.sessions.backend.session_backend import SessionHandle
from reverie.sessions.protocol.errors import CommandError, ErrorCode
from reverie.sessions.state import playheads


class WorkerChannel:
    """Sends to the lease once the session has its place."""

    def __init__(self, session: str, receipts: ControlReceipts, ask_limit_s: float) -> None:
        self._session = session
        self._receipts = receipts
        self._ask_limit_s = ask_limit_s
        self._lease: SessionHandle | None = None
        self._connected = asyncio.Event()
        self._watched = False
        self._seen: dict[str, int] = {}  # of each loop

    def connect(self, lease: SessionHandle) -> None:
        """Use a lease that was just opened, and send what has waited for it."""
        self._lease = lease
        if self._watched:
            self._send(SetWatched(self._session, True))
        if waiting := self._receipts.waiting():
            self._send(PushInputs(self._session, waiting))
        self._connected.set()

    @property
    def is_connected(self) -> bool:
        """Whether the session has its place now."""
        return self._lease is not None

    async def connected(self) -> None:
        """Return once the session has its place."""
        await self._connected.wait()

    def push(self, command: str, inputs: tuple[ControlInput, ...], tell: Tell) -> None:
        """Send controls; the command gets its receipt by `tell`."""
        if inputs:
            self.expect(command, inputs, tell)
            self._send(PushInputs(self._session, inputs))

    def expect(self, command: str, inputs: tuple[ControlInput, ...], tell: Tell) -> None:
        """Expect the receipt of controls that are sent in another way; it is given by `tell`."""
        self._receipts.open(command, inputs, tell)

    def release_keys(self) -> None:
        """Release every held key."""
        self._send(ReleaseKeys(self._session))

    def watched(self, watched: bool) -> None:
        """Say whether any client watches."""
        if watched != self._watched:
            self._watched = watched
            self._send(SetWatched(self._session, watched))

    def seen(self, playhead: playheads.SeenPosition) -> None:
        """Say what was seen, if it is more than before."""
        if playhead.chunk > self._seen.get(playhead.loop, -1):
            self._seen[playhead.loop] = playhead.chunk
            self._send(
                PlayheadMoved(
                    self._session,
                    playhead.chunk,
                    playhead.loop,
                    playhead.in_time,
                    playhead.line,
                    playhead.waited_us,
                )
            )

    async def ask(self, message: Request) -> RequestDone:
        """Send the loop a request, once there is a loop, and wait for its answer.

        Raises:
            CommandError: it refused, or could not be asked.
        """
        await self._connected.wait()
        assert self._lease is not None, "connecting sets the lease"
        try:
            async with asyncio.timeout(self._ask_limit_s):
                return await self._lease.ask(message)
        except RequestRefusedError as error:
            raise CommandError(error.code, public_errors.refused(error)) from None
        except WorkerLostError:
            lost = public_errors.WORKER_LOST
            raise CommandError(ErrorCode.WORKER_LOST, lost, retry_after_s=1.0) from None
        except (TimeoutError, AskTimeoutError):
            waited = f"the loop did not answer within {self._ask_limit_s:g} s"
            raise CommandError(ErrorCode.TIMED_OUT, waited) from None
        except PoolError:
            raise CommandError(ErrorCode.CLOSED, public_errors.LOOP_GONE) from None

    async def release(self) -> None:
        """Give the place back, if there is one."""
        lease, self._lease = self._lease, None
        if lease is not None:
            await lease.release()

    def _send(self, message: OneWay) -> None:
        if self._lease is not None:
            self._lease.send(message)
