"""What can go wrong between a room and a session.

LiveKitError
├── SteeringError        somebody asked for what cannot be; they are told, nothing has changed
├── NotPublishedError    the room did not take a track in time; try again, or leave
├── NotJoinedError       the room cannot be had; says why, and whether trying again may help
└── VisitOverError       (inside) ends the tasks that serve a room; says why
"""

from dataclasses import dataclass

from reverie.rtc.wire.errors import RefusedError, RtcError


@dataclass(frozen=True, slots=True)
class RoomEnding:
    """Why a room is not served any more.

    Attributes:
        reason: `session_over`, `abandoned`, `left` (somebody else ended it), or in small letters
            LiveKit's reason for a disconnection, such as `room_deleted`.
        message: more of it.
        final: coming back would be wrong or in vain; otherwise the network was lost.
    """

    reason: str
    message: str = ""
    final: bool = True


class LiveKitError(RtcError):
    """Base of all errors of this package."""


class SteeringError(RefusedError, LiveKitError):
    """A participant's wish is refused, with a typed code.

    Codes are those of the session (`sessions.errors.ErrorCode`) and of messages (`strict_json`),
    and of this package: `seat_taken`, `not_driving`, `not_here`, `unreliable_edge`, `broken_off`.
    """


class NotPublishedError(LiveKitError):
    """A track could not be published."""


class NotJoinedError(LiveKitError):
    """A room could not be joined.

    Attributes:
        final: trying again would be in vain.
    """

    def __init__(self, message: str, *, final: bool) -> None:
        super().__init__(message)
        self.final = final


class RoomSessionOverError(LiveKitError):
    """A room is not served any more."""

    def __init__(self, ending: RoomEnding) -> None:
        super().__init__(ending.reason)
        self.ending = ending
