"""What can go wrong with a session.

SessionError
├── CommandError           a command was refused; tell its sender, nothing has changed
├── IllegalTriggerError    no edge leads from that phase; a fault of this package
├── SessionEndedError      the session has ended, for a typed reason; open another
├── AttachmentEndedError   an attachment has ended, for a typed reason; the session may continue
├── UnknownSessionError    there is no session of that id, or the token is not one of its tokens
├── UnknownOwnerError      this server did not issue that owner's secret; ask without one
├── BadRequestError        a session cannot be opened with that; names the field
├── TooManyError           a limit of the deployment is reached; try again later
├── RecordingsError        the folder for recordings cannot be used; the operator must act
├── VoiceError             the voice that the deployment names is not on this host; likewise
├── NotPixelsError         a frame needs a decoder; ask for `rgb24`
└── NotSamplesError        sound needs a decoder; ask for `pcm16`
"""

from dataclasses import dataclass
from enum import StrEnum


class ErrorCode(StrEnum):
    """Why a command was refused: stable, for programs."""

    WRONG_TYPE = "wrong_type"
    MISSING = "missing"
    UNKNOWN_FIELD = "unknown_field"
    UNKNOWN_COMMAND = "unknown_command"
    OUT_OF_RANGE = "out_of_range"
    NON_FINITE = "non_finite"
    TOO_LONG = "too_long"
    BAD_TEXT = "bad_text"
    UNKNOWN_CONTROL = "unknown_control"
    UNKNOWN_KEY = "unknown_key"
    UNKNOWN_PARAMETER = "unknown_parameter"
    UNKNOWN_STREAM = "unknown_stream"
    UNKNOWN_LOOP = "unknown_loop"
    BAD_MEDIA = "bad_media"
    NOT_INSTALLED = "not_installed"
    UNKNOWN_MODEL = "unknown_model"
    UNKNOWN_PROGRAM = "unknown_program"
    NOT_PAUSED = "not_paused"
    NO_TURNS = "no_turns"
    NOT_SHOWN = "not_shown"
    READ_ONLY = "read_only"
    ALREADY_RECORDING = "already_recording"
    NOT_RECORDING = "not_recording"
    NOTHING_TO_RECORD = "nothing_to_record"
    NOT_ENABLED = "not_enabled"
    TOO_MANY = "too_many"
    TIMED_OUT = "timed_out"
    WORKER_LOST = "worker_lost"
    CLOSED = "closed"


class SessionError(Exception):
    """Base of all errors of this package."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What the sender of something that was refused is told, on every transport.

    Attributes:
        code: stable and short, such as `too_large`.
        message: for people; names the limit where there is one.
        field: path of the offending field, such as `action.move`; None when no field is.
        command: id of the command that was refused, as far as it is known.
        retry_after_s: when to try again.
    """

    code: str
    message: str
    field: str | None = None
    command: str | None = None
    retry_after_s: float | None = None


class RefusalError(Exception):
    """Base of what is raised when something from outside is refused; nothing has changed."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        field: str | None = None,
        command: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.refusal = Refusal(code, message, field, command, retry_after_s)

    @property
    def code(self) -> str:
        """What was wrong, stable and short."""
        return self.refusal.code

    @property
    def message(self) -> str:
        """What was wrong, for a person."""
        return self.refusal.message

    @property
    def field(self) -> str | None:
        """Path of the offending field."""
        return self.refusal.field

    @property
    def command(self) -> str | None:
        """Id of the command that was refused."""
        return self.refusal.command

    @property
    def retry_after_s(self) -> float | None:
        """When another try may be worthwhile."""
        return self.refusal.retry_after_s


class CommandError(SessionError, RefusalError):
    """A command was refused and changed nothing.

    Its code is one of `ErrorCode`, or what the loop refused a request with.
    """


class IllegalTriggerError(SessionError):
    """No edge leads from that phase by that trigger; nothing has changed."""


class SessionEndedError(SessionError):
    """The session has ended.

    Attributes:
        reason: stable and short, such as `closed`, `abandoned`, `worker_lost`.
    """

    def __init__(self, reason: str, message: str = "") -> None:
        super().__init__(message or f"the session has ended: {reason}")
        self.reason = reason


class AttachmentEndedError(SessionError):
    """Nothing more comes from this attachment.

    Attributes:
        reason: why it ended, such as `replaced`, `slow_viewer`, `idle`; or why the session did.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"the attachment has ended: {reason}")
        self.reason = reason


class UnknownSessionError(SessionError):
    """No session of that id. A wrong token gives the same error, so that ids cannot be probed."""


class UnknownOwnerError(SessionError):
    """An owner's secret that this server did not issue since it started."""


class BadRequestError(SessionError, RefusalError):
    """A session cannot be opened with that; `field` is the offending field of the request."""

    def __init__(self, code: str, message: str, *, field: str) -> None:
        super().__init__(code, message, field=field)


class TooManyError(SessionError):
    """A limit on a count is reached.

    Attributes:
        what: the name of the limit in the deployment.
        limit: its value.
        retry_after_s: when to try again.
    """

    def __init__(self, what: str, limit: int, retry_after_s: float = 5.0) -> None:
        super().__init__(f"{what} is limited to {limit}")
        self.what = what
        self.limit = limit
        self.retry_after_s = retry_after_s


class RecordingsError(SessionError):
    """Recordings cannot be kept where the deployment says."""


class VoiceError(SessionError):
    """The voice that the deployment names is not on this host."""


class NotPixelsError(SessionError):
    """The bytes of a chunk are not pixels."""


class NotSamplesError(SessionError):
    """The bytes of a chunk are not samples."""
