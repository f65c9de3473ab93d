"""The errors of this package.

RtcError
├── RefusedError             input is refused with a typed code; nothing has changed
│   ├── BadMessageError      a message cannot be read; tell the sender and continue
│   ├── BadHelloError        the first message of a socket is no valid hello; close the socket
│   ├── HttpRefusedError     an HTTP request is answered with this status and error
│   └── RateLimitedError     too many commands at once; the client waits and tries again
├── NotAdmittedError         a socket gets no attachment; tell the client why and close it
├── CannotListenError        the server cannot listen on its address; choose another
├── PeerLeftError            a socket is closed; end its tasks
├── PeerEndedError           a WebRTC peer cannot continue; tell it why and close it
└── ServerError              (client) the server refused, or could not be reached
    ├── ServerRefusedError   the server refused a request with a typed code; fix the request
    └── ConnectionLostError  the server was not reached in time; the session may still exist
"""

import errno
import os
import socket
from dataclasses import asdict
from http import HTTPStatus
from typing import Self, TypeVar

from reverie.sessions.protocol.errors import Refusal, RefusalError, SessionError, TooManyError
from reverie.sessions.protocol.events import Error, SessionClosed

NO_SUCH_SESSION = "there is no such session, or the token belongs to another one"
"""The text for both, so that ids cannot be probed."""


INTERNAL_ERROR = "the server made a mistake; its log says more"


class RtcError(Exception):
    """Base of all errors of this package."""


class RefusedError(RtcError, RefusalError):
    """Something from outside is refused; a `field` of `$` is the message itself."""

    @classmethod
    def of(cls, refusal: Refusal) -> Self:
        """Return the error that tells of this refusal."""
        return cls(**asdict(refusal))

    def __str__(self) -> str:
        return self.message


class BadMessageError(RefusedError):
    """A message cannot be read."""


class BadHelloError(RefusedError):
    """The first message of a socket is not a hello that this server understands."""


class HttpRefusedError(RefusedError):
    """An HTTP request is refused with a status of its own."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        field: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(code, message, field=field, retry_after_s=retry_after_s)
        self.status = status

    @classmethod
    def of(cls, refusal: Refusal, status: int = HTTPStatus.BAD_REQUEST) -> Self:
        """Return the error that tells of this refusal, with a status."""
        return cls(
            status,
            refusal.code,
            refusal.message,
            field=refusal.field,
            retry_after_s=refusal.retry_after_s,
        )


class RateLimitedError(RefusedError):
    """A command exceeds the rate limit of its attachment."""

    def __init__(
        self, burst: int, per_s: int, *, command: str | None, retry_after_s: float
    ) -> None:
        super().__init__(
            "rate_limited",
            f"commands are limited to {burst} at once (command_burst) and {per_s} a second "
            "(commands_per_s)",
            command=command,
            retry_after_s=retry_after_s,
        )


def too_many(error: TooManyError) -> Refusal:
    """Return the refusal that tells which limit is reached."""
    return Refusal(f"too_many_{error.what}", str(error), retry_after_s=error.retry_after_s)


class NotAdmittedError(RtcError):
    """A WebSocket is not admitted.

    Attributes:
        code: the close code.
        reason: the close reason.
        told: the event to send before the close.
    """

    def __init__(self, code: int, reason: str, told: Error | SessionClosed) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.told = told


class CannotListenError(RtcError):
    """The server's address is in use, not of this machine, or not allowed."""

    def __init__(self, host: str, port: int, error: OSError) -> None:
        taken = error.errno == errno.EADDRINUSE
        why = "the port is in use" if taken else os.strerror(error.errno or 0)
        if isinstance(error, socket.gaierror):
            why = error.strerror or "no such host"
        super().__init__(
            f"cannot listen on {host}:{port}: {why}; "
            + (
                "choose another with --port or REVERIE_SERVER__PORT (make serve PORT=...)"
                if taken
                else "see --host and --port, or REVERIE_SERVER__HOST and REVERIE_SERVER__PORT"
            )
        )


class PeerLeftError(RtcError):
    """The client has closed or lost the connection, and nothing more can be sent to it."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the client disconnected with {code}")
        self.code = code


class PeerEndedError(RtcError):
    """A WebRTC peer cannot continue, while its session does.

    Attributes:
        code: as of the close of a WebSocket.
        reason: likewise; stable and short.
        message: for a person.
    """

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.code = code
        self.reason = reason
        self.message = message


class ServerError(RtcError, SessionError):
    """Base of the client's errors about a server; a `SessionError`, as of a session in-process."""


class ServerRefusedError(ServerError, RefusalError):
    """The server refused a request; `code`, `field` and `retry_after_s` are the server's."""

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class ConnectionLostError(ServerError):
    """The server could not be reached in time."""


_Found = TypeVar("_Found", bound=Exception)


def first_of(group: BaseExceptionGroup[_Found]) -> _Found:
    """Return the first error in a group that is not itself a group."""
    found = group.exceptions[0]
    return first_of(found) if isinstance(found, BaseExceptionGroup) else found
