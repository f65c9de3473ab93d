"""What a session says: one frozen model an event, the same on every transport.

Those of its streams are in `media_events.py`, and what it tells of itself in `session_view.py`.
"""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from reverie.sessions.protocol.commands import CutReason
from reverie.sessions.protocol.event_base import Event
from reverie.sessions.protocol.media_events import (
    MediaChunk,
    MediaComplete,
    MediaInit,
    TextDelta,
    TurnEnded,
    TurnStarted,
)
from reverie.sessions.protocol.session_view import (
    ControlView,
    InputView,
    LimitsView,
    ParameterView,
    SessionView,
    StreamView,
)

__all__ = [
    "EVENT",
    "AnyEvent",
    "ArtifactCompleted",
    "ArtifactCreated",
    "ArtifactUpdated",
    "ControlApplied",
    "ControlSuperseded",
    "ControlView",
    "Error",
    "Event",
    "InputView",
    "LimitsView",
    "MediaChunk",
    "MediaComplete",
    "MediaInit",
    "ParameterView",
    "RequestAccepted",
    "RequestQueued",
    "RequestStarted",
    "SessionAttached",
    "SessionClosed",
    "SessionInterrupted",
    "SessionRecovering",
    "SessionUpdated",
    "SessionView",
    "StreamView",
    "TextDelta",
    "TurnEnded",
    "TurnStarted",
]


# --- requests and the session itself ---


class RequestAccepted(Event):
    """A command was carried out, or will act at the next step."""

    type: Literal["request.accepted"] = "request.accepted"
    command: str


class RequestQueued(Event):
    """The session waits for a free place."""

    type: Literal["request.queued"] = "request.queued"
    position: int = Field(ge=1)


class RequestStarted(Event):
    """The session has its place on a model instance."""

    type: Literal["request.started"] = "request.started"


class SessionAttached(Event):
    """The first event of an attachment: the protocol, and the session as it is now."""

    type: Literal["session.attached"] = "session.attached"
    protocol: int
    role: Literal["driver", "viewer"]
    view: SessionView
    limits: LimitsView


class SessionUpdated(Event):
    """Something of the session changed: its state, prompt, parameters or viewers."""

    type: Literal["session.updated"] = "session.updated"
    view: SessionView


class SessionInterrupted(Event):
    """Unseen frames were dropped; the next chunk follows from `chunk`.

    Sent for interrupt, rewind, reset, restore and controls that act now, before any frame that
    follows.
    """

    type: Literal["session.interrupted"] = "session.interrupted"
    command: str
    reason: CutReason
    chunk: int = Field(
        ge=-1, description="The chunk that the session returned to; -1 is before the first."
    )
    seen_us: int = Field(
        description="Media time of the last frame that was seen; -1 before the first."
    )
    next_us: int = Field(description="Media time at which the next frame begins.")
    loops: tuple[str, ...] = Field(default=(), description="The loops that were cut.")


class SessionRecovering(Event):
    """The worker was lost; the session will continue from its last kept state."""

    type: Literal["session.recovering"] = "session.recovering"
    reason: str
    chunk: int = Field(ge=-1, description="The newest chunk before the loss.")


class SessionClosed(Event):
    """The last event of all."""

    type: Literal["session.closed"] = "session.closed"
    reason: str
    message: str = ""


# --- controls ---


class ControlApplied(Event):
    """A control acts; the frame at `pts_us` is the first that shows it. Comes before that frame."""

    type: Literal["control.applied"] = "control.applied"
    control: str
    step: int
    chunk: int
    pts_us: int
    unknown_words: tuple[str, ...] = ()
    truncated_at: int | None = None
    dropped_messages: int = Field(
        default=0,
        description="Of a turn: how many of the oldest messages the model no longer reads.",
    )


class ControlSuperseded(Event):
    """A control never acted; `by` took its place, or null when no other did."""

    type: Literal["control.superseded"] = "control.superseded"
    control: str
    by: str | None = None


# --- artifacts, errors ---


class ArtifactCreated(Event):
    """A snapshot, a recording or a clip is kept from now on."""

    type: Literal["artifact.created"] = "artifact.created"
    kind: Literal["snapshot", "recording", "clip"]
    name: str = Field(description="Of a recording or clip: its id.")
    chunk: int


class ArtifactUpdated(Event):
    """A recording has grown. Comes about once a second."""

    type: Literal["artifact.updated"] = "artifact.updated"
    kind: Literal["recording", "clip"]
    name: str
    frames: int = Field(ge=0)
    duration_us: int = Field(ge=0)
    size_bytes: int = Field(ge=0)


class ArtifactCompleted(Event):
    """A recording or a clip is complete and can be fetched."""

    type: Literal["artifact.completed"] = "artifact.completed"
    kind: Literal["recording", "clip"]
    name: str
    reason: str = Field(description="stopped, clipped, session_over, longest_s, disk_full, ...")
    frames: int = Field(ge=0)
    duration_us: int = Field(ge=0)
    size_bytes: int = Field(ge=0)
    left_out: int = Field(default=0, ge=0, description="Frames that are missing.")


class Error(Event):
    """Something failed; the session continues unless `session.closed` follows.

    Attributes:
        code: stable and short, such as `too_large`, `unknown_field`, `non_finite`.
        field: the path of the offending field, such as `action.move`.
        command: the command that it answers.
        loop: the loop that failed, if one did.
    """

    type: Literal["error"] = "error"
    code: str
    message: str
    field: str | None = None
    command: str | None = None
    chunk: int | None = None
    loop: str | None = None
    retry_after_s: float | None = None


AnyEvent = Annotated[
    RequestAccepted
    | RequestQueued
    | RequestStarted
    | SessionAttached
    | SessionUpdated
    | SessionInterrupted
    | SessionRecovering
    | SessionClosed
    | ControlApplied
    | ControlSuperseded
    | MediaInit
    | MediaChunk
    | MediaComplete
    | TextDelta
    | TurnStarted
    | TurnEnded
    | ArtifactCreated
    | ArtifactUpdated
    | ArtifactCompleted
    | Error,
    Field(discriminator="type"),
]

EVENT: TypeAdapter[AnyEvent] = TypeAdapter(AnyEvent)
"""Validates a decoded JSON object into an event."""
