"""What can go wrong at the edges.

RtcError
├── RefusedError             what came in is refused with a typed code; nothing has changed
│   ├── BadMessageError      it cannot be read as what it should be; tell the sender, go on
│   ├── BadHelloError        the first message of a socket is no hello; close the socket
│   ├── HttpRefusedError     a request gets this status and error, and nothing else
│   └── RateLimitedError     too many commands at once; the client waits and sends it again
├── NotAdmittedError         a socket gets no attachment; say why and close it
├── CannotListenError        the server's address cannot be had; choose another
├── PeerLeftError            a socket is gone; end what served it
├── PeerEndedError           a WebRTC peer cannot go on; tell it why and close it
└── ServerError              (client) what the server said or failed to say
    ├── ServerRefusedError   the server refused a request with a typed code; fix the request
    └── ConnectionLostError  no connection could be had in time; the session may still be there
"""

import errno
import os
import socket
from typing import TypeVar

from reverie.sessions.protocol.errors import SessionError
from reverie.sessions.protocol.events import Error, SessionClosed


class RtcError(Exception):
    """Base of all errors of this room."""


class RefusedError(RtcError):
    """Something from outside is refused.

    Attributes:
        code: stable and short, such as `too_large`.
        message: for a person.
        field: path of the offending field; `$` is the message itself; None when no field is.
        command: id of the command that it answers, when that could be read.
        retry_after_s: when it may be worth another try.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        field: str | None = None,
        command: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.field = field
        self.command = command
        self.retry_after_s = retry_after_s


class BadMessageError(RefusedError):
    """A message cannot be read as what it should be."""


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


class RateLimitedError(RefusedError):
    """A command came above the rate that one attachment is allowed."""

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


class NotAdmittedError(RtcError):
    """A socket is not let in.

    Attributes:
        code: to close it with.
        reason: likewise.
        told: the event to send before.
    """

    def __init__(self, code: int, reason: str, told: Error | SessionClosed) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.told = told


class CannotListenError(RtcError):
    """The server's address is taken, not of this machine, or not allowed."""

    def __init__(self, host: str, port: int, error: OSError) -> None:
        taken = error.errno == errno.EADDRINUSE
        why = "the port is taken" if taken else os.strerror(error.errno or 0)
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
    """The other side of a socket is gone, and nothing more can be said to it."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the peer left with {code}")
        self.code = code


class PeerEndedError(RtcError):
    """A WebRTC peer cannot go on, while its session does.

    Attributes:
        code: as for closing a WebSocket.
        reason: likewise; stable and short.
        message: for a person.
    """

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.code = code
        self.reason = reason
        self.message = message


class ServerError(RtcError, SessionError):
    """Base of what a client learns of a server; a `SessionError`, as for a session in-process."""


class ServerRefusedError(ServerError):
    """The server refused a request; `code`, `field` and `retry_after_s` are the server's."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        field: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.field = field
        self.retry_after_s = retry_after_s


class ConnectionLostError(ServerError):
    """The server could not be reached in time."""


_Found = TypeVar("_Found", bound=Exception)


def first_of(group: BaseExceptionGroup[_Found]) -> _Found:
    """Return the first error in a group that is no group itself."""
    found = group.exceptions[0]
    return first_of(found) if isinstance(found, BaseExceptionGroup) else found
