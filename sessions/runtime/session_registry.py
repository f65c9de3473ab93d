"""The open sessions of a server by id, their secrets, and why others have ended.

Three secrets, none derived from another: the owner's secret lists sessions, a session's token
drives it, its watch token only watches. Ids are not secret.
"""

import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import islice

from reverie.sessions.attachments.attachment import Role
from reverie.sessions.protocol.errors import SessionEndedError, TooManyError, UnknownSessionError
from reverie.sessions.recording.recording import Keys
from reverie.sessions.runtime.server_session import ServerSession
from reverie.sessions.state.limits import SessionLimits

REMEMBERED = 1000
"""Ended sessions whose reason is kept, for clients that have their secrets."""


@dataclass(frozen=True, slots=True)
class SessionCredentials:
    """A session that was opened, and its secrets."""

    session: ServerSession
    token: str = field(repr=False)
    watch_token: str = field(repr=False)
    owner: str = field(repr=False)
    address: str | None = None


class SessionRegistry:
    """Sessions by id, and how many there may be."""

    def __init__(self, limits: SessionLimits) -> None:
        self._limits = limits
        self._credentials_by_id: dict[str, SessionCredentials] = {}
        # Why, and the keys that open that.
        self._ended: OrderedDict[str, tuple[str, Keys]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._credentials_by_id)

    @property
    def sessions(self) -> tuple[ServerSession, ...]:
        """All of them, oldest first."""
        return tuple(each.session for each in self._credentials_by_id.values())

    def add(self, credentials: SessionCredentials) -> None:
        """Add a session that was opened."""
        self._credentials_by_id[credentials.session.id] = credentials

    def remove(self, session: str) -> None:
        """Remove a session that has ended; the reason is kept for clients with its secrets."""
        credentials = self._credentials_by_id.pop(session)
        keys = Keys.of(credentials.token, credentials.watch_token, credentials.owner)
        self._ended[session] = credentials.session.state.reason or "", keys
        for forgotten in tuple(islice(self._ended, max(0, len(self._ended) - REMEMBERED))):
            del self._ended[forgotten]

    def get(self, session: str) -> ServerSession:
        """Return a session.

        Raises:
            SessionEndedError: it has ended.
            UnknownSessionError: there is none of that id.
        """
        credentials = self._credentials_by_id.get(session)
        if credentials is not None and not credentials.session.state.over:
            return credentials.session
        if credentials is not None:
            raise SessionEndedError(credentials.session.state.reason or "closed")
        if session in self._ended:
            raise SessionEndedError(self._ended[session][0])
        raise UnknownSessionError(session)

    def admit(self, session: str, token: str) -> tuple[ServerSession, Role]:
        """Return a session and the most that a token allows in it.

        A client without one of its secrets does not learn whether the session exists.

        Raises:
            SessionEndedError: it has ended; only a client with one of its secrets is told.
            UnknownSessionError: there is none of that id, or the token is not one of its tokens.
        """
        ended = self._ended.get(session)
        if ended is not None and ended[1].role(token) is not None:
            raise SessionEndedError(ended[0])
        credentials = self._credentials_by_id.get(session)
        drives = credentials is not None and _same(token, credentials.token)
        watches = credentials is not None and _same(token, credentials.watch_token)
        if credentials is None or not (drives or watches):
            raise UnknownSessionError(session)
        return self.get(session), Role.DRIVER if drives else Role.VIEWER

    def list(self, owner: str) -> tuple[ServerSession, ...]:
        """Return the sessions of the owner with that secret, oldest first."""
        return tuple(
            credentials.session
            for credentials in self._credentials_by_id.values()
            if _same(owner, credentials.owner)
        )

    def check_counts(self, owner: str, address: str | None) -> None:
        """Refuse another session of an owner from an address.

        Raises:
            TooManyError: a limit is reached.
        """
        if len(self._credentials_by_id) >= self._limits.sessions:
            raise TooManyError("sessions", self._limits.sessions)
        if len(self.list(owner)) >= self._limits.sessions_per_owner:
            raise TooManyError("sessions_per_owner", self._limits.sessions_per_owner)
        # A request without an owner gets a new owner each time; only its address stays the same.
        most = self._limits.sessions_per_address
        here = [
            credentials
            for credentials in self._credentials_by_id.values()
            if credentials.address == address
        ]
        if address is not None and most is not None and len(here) >= most:
            raise TooManyError("sessions_per_address", most)


def _same(given: str, secret: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "surrogatepass"), secret.encode())
