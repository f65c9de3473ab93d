"""What can go wrong between a room and a session.

LiveKitError
├── InputRefusedError        a request was refused; its sender is told, nothing has changed
├── NotPublishedError    the room did not take a track in time; try again, or leave
├── NotJoinedError       a room could not be joined; says why, and whether a retry may help
└── RoomSessionOverError (internal) ends the tasks that serve a room; says why
"""

from dataclasses import dataclass

from pydantic import ValidationError

from reverie.rtc.wire.errors import RefusedError, RtcError
from reverie.rtc.wire.strict_json import ROOT, printable
from reverie.sessions.protocol.errors import ErrorCode

_CODES = {
    "missing": ErrorCode.MISSING,
    "extra_forbidden": ErrorCode.UNKNOWN_FIELD,
    "string_too_long": ErrorCode.TOO_LONG,
}


@dataclass(frozen=True, slots=True)
class RoomEnding:
    """Why a room is no longer served.

    Attributes:
        reason: `session_over`, `abandoned`, `left` (the bridge was cancelled), or in lower
            case LiveKit's reason for a disconnection, such as `room_deleted`.
        message: details.
        final: rejoining would be wrong or useless; otherwise the network was lost.
    """

    reason: str
    message: str = ""
    final: bool = True


class LiveKitError(RtcError):
    """Base of all errors of this package."""


class InputRefusedError(RefusedError, LiveKitError):
    """A participant's request is refused, with a typed code.

    Codes are those of the session (`sessions.protocol.errors.ErrorCode`), of messages
    (`strict_json`), and of this package: `seat_taken`, `not_driving`, `not_here`,
    `unreliable_edge`, `broken_off`.
    """


class NotPublishedError(LiveKitError):
    """A track could not be published."""


class NotJoinedError(LiveKitError):
    """A room could not be joined.

    Attributes:
        final: a retry would be useless.
    """

    def __init__(self, message: str, *, final: bool) -> None:
        super().__init__(message)
        self.final = final


class RoomSessionOverError(LiveKitError):
    """A room is no longer served."""

    def __init__(self, ending: RoomEnding) -> None:
        super().__init__(ending.reason)
        self.ending = ending


def as_refusal(error: ValidationError) -> InputRefusedError:
    """Return the refusal for the first problem of a message."""
    problem = error.errors(include_url=False, include_input=False)[0]
    path = ".".join(printable(str(part)) for part in problem["loc"])[:200]
    kind = problem["type"]
    code = _CODES.get(kind, ErrorCode.WRONG_TYPE if _is_of_type(kind) else ErrorCode.OUT_OF_RANGE)
    message = f"{path or 'the message'}: {problem['msg'][:1].lower()}{problem['msg'][1:]}"
    return InputRefusedError(code, message, field=path or ROOT)


def said(refusal: InputRefusedError) -> dict[str, object]:
    """Return the wire form of a refusal."""
    return {
        "code": str(refusal.code),
        "message": refusal.message,
        "field": refusal.field,
        "retry_after_s": refusal.retry_after_s,
    }


def _is_of_type(kind: str) -> bool:
    return kind.endswith("_type")
