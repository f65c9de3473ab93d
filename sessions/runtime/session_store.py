"""All sessions of a server: opening, forking, ending. `session_registry.py` holds those open."""

import asyncio
import logging
import secrets

from reverie.gpu_pool.wire.errors import PoolClosedError, PoolError, PoolFullError
from reverie.gpu_pool.wire.shares import Accounts
from reverie.gpu_pool.wire.start_request import ForkOrigin
from reverie.media import Clock, MonotonicClock, VideoFanout
from reverie.media.audio.espeak import Speech
from reverie.models.contract.spec import ModelSpec
from reverie.sessions.attachments.attachment import Role
from reverie.sessions.backend.public_errors import NOT_SERVED
from reverie.sessions.backend.session_backend import SessionBackend
from reverie.sessions.protocol.errors import (
    BadRequestError,
    SessionEndedError,
    TooManyError,
    UnknownOwnerError,
)
from reverie.sessions.recording.recording import Keys, hashed
from reverie.sessions.recording.recordings import Recordings
from reverie.sessions.runtime.server_session import ServerSession
from reverie.sessions.runtime.session_registry import SessionCredentials, SessionRegistry
from reverie.sessions.runtime.session_request import (
    CheckedRequest,
    SessionRequest,
    check_forks,
    forked,
)
from reverie.sessions.state.limits import SessionLimits
from reverie.sessions.state.owners import OwnerSecrets
from reverie.sessions.state.session_state import SessionState
from reverie.sessions.streams.output_streams import OpenFanout

logger = logging.getLogger(__name__)


class SessionStore:
    """Sessions by id. For one event loop."""

    def __init__(
        self,
        backend: SessionBackend,
        limits: SessionLimits,
        tasks: asyncio.TaskGroup,
        *,
        clock: Clock | None = None,
        open_fanout: OpenFanout = VideoFanout,
        recordings: Recordings | None = None,
        speech: Speech | None = None,
    ) -> None:
        """Open no session yet; sessions run as children of `tasks`.

        Args:
            recordings: where sessions are recorded to; None: they cannot be recorded.
            speech: the voice for sessions that ask for one; None: there is none.
        """
        self._speech = speech
        self.recordings = recordings
        self._backend = backend
        self._limits = limits
        self._tasks = tasks
        self._clock = clock or MonotonicClock()
        self._open_fanout = open_fanout
        self._registry = SessionRegistry(limits)
        self._closing: str | None = None
        self._owners = OwnerSecrets()

    def __len__(self) -> int:
        """How many sessions there are."""
        return len(self._registry)

    @property
    def input_pixels(self) -> int:
        """The largest picture that can be pushed into a session."""
        return self._limits.input_pixels

    async def create(self, request: SessionRequest) -> SessionCredentials:
        """Open a session; return once it has a place or waits for one. Cancelling ends it.

        Raises:
            BadRequestError: names the field of the request that is wrong.
            UnknownOwnerError: this server did not issue the owner's secret.
            TooManyError: a limit is reached, or no place is free and the wait queue is full.
            SessionEndedError: the store is closing, or the session could not start.
        """
        self._require_open()
        if request.owner is not None:
            self.check_owner(request.owner)
        checked = CheckedRequest.of(request, self._backend.specs, self._limits)
        state = checked.state(request.owner or self._owners.issue())
        speech = checked.voice(self._speech)
        return await self._open(state, checked.spec, speech, request.address, None)

    def expected_position(self, request: SessionRequest) -> int:
        """Return what `create` would give now: 0 is a place, else a position in the waiting line.

        Nothing is opened or counted.

        Raises:
            BadRequestError, UnknownOwnerError, TooManyError, SessionEndedError: as `create` would.
        """
        self._require_open()
        if request.owner is not None:
            self.check_owner(request.owner)
        CheckedRequest.of(request, self._backend.specs, self._limits)
        owner = request.owner or ""
        self._registry.check_counts(owner, request.address)
        try:
            accounts = self.accounts(owner, request.address)
            return self._backend.expected_position(request.model, accounts)
        except PoolFullError as error:
            raise TooManyError("waiting_line", error.limit, error.retry_after_s) from None
        except PoolError as error:
            code = "shutdown" if isinstance(error, PoolClosedError) else "model_unavailable"
            raise SessionEndedError(code, NOT_SERVED) from None

    async def fork(
        self, session: str, chunk: int | None = None, address: str | None = None
    ) -> SessionCredentials:
        """Open a session of the same owner that continues from what was seen of another one.

        It has prompt, parameters and world of the other, no held keys, no snapshots and no voice.
        It does not wait for a place, because the other would continue meanwhile.

        Args:
            session: the other one.
            chunk: fork from exactly this chunk; None is what was seen last.
            address: the network address of the client.

        Raises:
            UnknownSessionError: there is none of that id.
            BadRequestError: its program cannot be forked, or the chunk is not kept.
            TooManyError: a limit is reached, or no place is free.
            SessionEndedError: it has ended, the store is closing, or the fork could not start.
        """
        self._require_open()
        other = self.get(session)
        spec = self._backend.specs[other.state.model]
        check_forks(spec, other.state.program)
        origin = other.parting if chunk is None else ForkOrigin(session, chunk, exact=True)
        try:
            return await self._open(forked(other.state), spec, None, address, origin)
        except SessionEndedError as error:
            if error.reason != "chunk_not_kept":
                raise
            raise BadRequestError(error.reason, str(error), field="chunk") from None

    async def _open(
        self,
        state: SessionState,
        spec: ModelSpec,
        speech: Speech | None,
        address: str | None,
        origin: ForkOrigin | None,
    ) -> SessionCredentials:
        self._registry.check_counts(state.owner, address)
        token, watch_token = _secret(), _secret()
        server_session = ServerSession(
            state,
            spec,
            self._backend,
            self._limits,
            self._clock,
            self._open_fanout,
            self.recordings,
            Keys.of(token, watch_token, state.owner),
            speech,
            origin,
            self.accounts(state.owner, address),
        )
        credentials = SessionCredentials(server_session, token, watch_token, state.owner, address)
        self._registry.add(credentials)
        self._tasks.create_task(self._host(server_session), name=f"session {server_session.id}")
        try:
            await server_session.placed()
        except PoolFullError as error:
            what = "waiting_line" if origin is None else "places"
            raise TooManyError(what, error.limit, error.retry_after_s) from None
        except BaseException:
            server_session.end("cancelled")
            raise
        if server_session.state.over:
            raise SessionEndedError(server_session.state.reason or "closed", server_session.message)
        return credentials

    def accounts(self, owner: str, address: str | None) -> Accounts:
        """Return what a request of an owner from an address is counted under."""
        return f"owner {hashed(owner)}", *self.address_accounts(address)

    def address_accounts(self, address: str | None) -> Accounts:
        """Return what a request from an address, of any owner, is counted under."""
        counted = address is not None and self._limits.sessions_per_address is not None
        return (f"address {address}",) if counted else ()

    def _require_open(self) -> None:
        if self._closing is not None:
            raise SessionEndedError(self._closing, "no new sessions: the server is shutting down")

    def get(self, session: str) -> ServerSession:
        """Return a session; see `SessionRegistry.get`."""
        return self._registry.get(session)

    def admit(self, session: str, token: str) -> tuple[ServerSession, Role]:
        """Return a session and the most that a token allows; see `SessionRegistry.admit`."""
        return self._registry.admit(session, token)

    def check_owner(self, owner: str) -> None:
        """Check that this server issued an owner's secret.

        Raises:
            UnknownOwnerError: it did not.
        """
        if not self._owners.issued(owner):
            raise UnknownOwnerError("this server did not issue that owner's secret")

    def list(self, owner: str) -> tuple[ServerSession, ...]:
        """Return the sessions of the owner with that secret, oldest first."""
        return self._registry.list(owner)

    def close(self, session: str, reason: str = "closed") -> None:
        """End a session.

        Raises:
            SessionEndedError: it has ended already.
            UnknownSessionError: there is none of that id.
        """
        self.get(session).end(reason)

    async def drain(self, limit_s: float, reason: str = "shutdown") -> None:
        """Refuse new sessions, and end all at the end of a chunk, or after `limit_s`."""
        self._closing = reason
        async with asyncio.TaskGroup() as tasks:
            for session in self._registry.sessions:
                tasks.create_task(session.drain(limit_s, reason), name=f"drain {session.id}")

    async def _host(self, server_session: ServerSession) -> None:
        try:
            await server_session.run()
        finally:
            self._registry.remove(server_session.id)


def _secret() -> str:
    return secrets.token_urlsafe(24)
