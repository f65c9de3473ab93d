"""What a session says: one frozen model an event, the same on every transport.

Every event carries the session, a sequence number that counts what this attachment was sent (+1
always), and a monotonic time in microseconds. The outbox fills those three in, so that the code
that makes an event says only what happened. `media.init` comes before the first chunk of a stream
and again after any change of codec or size; `media.complete` comes exactly once, after the last
chunk.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from reverie.sessions.protocol.commands import CutReason


class Value(BaseModel):
    """Base of all parts of events."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class Event(Value):
    """Base of all events."""

    session: str = ""
    sequence: int = Field(default=0, ge=0)
    time_us: int = Field(default=0, ge=0, description="The server's monotonic clock.")


class ControlView(Value):
    """A control that the program takes."""

    name: str
    merge: Literal["latest", "sum", "edges", "fifo"]
    keys: tuple[str, ...] = ()
    low: float = -1.0
    high: float = 1.0
    label: str = ""
    bindings: Mapping[str, tuple[str, ...]] = Field(
        default={},
        description="For a key, what presses it: a KeyboardEvent.code, MouseLeft or MouseRight.",
    )
    drag: Literal["", "x", "y"] = Field(
        default="", description="Which way the picture is dragged to move the control."
    )


class ParameterView(Value):
    """A parameter that can be changed while the session runs."""

    name: str
    value: float
    default: float
    low: float
    high: float
    integer: bool = False
    label: str = ""
    stream: str = Field(default="", description="The output that it switches on and off.")


class InputView(Value):
    """An input stream that the program takes. Pictures fill its size: what overhangs is cut."""

    name: str
    kind: Literal["video", "audio"]
    merge: Literal["latest", "fifo"] = Field(
        description="latest: only the newest counts, as for a camera; fifo: all do, as for a clip."
    )
    width: int = 0
    height: int = 0
    rate_hz: float = 0.0
    channels: int = 0
    label: str = ""


class StreamView(Value):
    """An output of the program."""

    name: str
    kind: Literal["video", "audio", "text"]
    loop: str = Field(description="The loop that puts it out; `interrupt` can name it.")


class SessionView(Value):
    """What a client shows of a session."""

    state: Literal["created", "queued", "active", "paused", "detached", "failed", "closed"]
    model: str
    program: str
    prompt: str
    seed: int
    controls: tuple[ControlView, ...] = ()
    parameters: tuple[ParameterView, ...] = ()
    inputs: tuple[InputView, ...] = ()
    streams: tuple[StreamView, ...] = ()
    takes_prompt: bool = Field(default=True, description="Whether a prompt changes anything.")
    takes_turns: bool = Field(default=False, description="Whether push_text takes mode turn.")
    example_prompts: tuple[str, ...] = Field(
        default=(), description="Prompts that the program understands, to be offered to people."
    )
    example_turns: tuple[str, ...] = Field(
        default=(), description="Likewise texts for push_text in mode turn."
    )
    viewers: int = 0
    lead_chunks: int = 1
    recording: str | None = Field(default=None, description="The running recording, if any.")


class LimitsView(Value):
    """The deployment's limits that a client can reach."""

    message_bytes: int
    commands_per_s: int
    prompt_chars: int
    recording: bool = Field(default=False, description="Whether the session can be recorded.")
    clip_s: float = Field(default=0.0, description="Seconds that are kept for clips; 0: none.")


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

    Sent for interrupt, rewind, reset and restore, before any frame that follows.
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


# --- media ---


class MediaInit(Event):
    """How to decode what follows on a stream."""

    type: Literal["media.init"] = "media.init"
    stream: str
    kind: Literal["video", "audio"]
    codec: str = Field(
        description="As for WebCodecs: avc1.42001f, vp8, opus; or jpeg, rgb24, pcm16."
    )
    container: Literal["annexb", "vp8", "jpeg", "raw", "opus", "rtp"]
    width: int = Field(default=0, description="Pixels; 0 for sound.")
    height: int = 0
    rate_hz: float = Field(description="Frames or samples a second.")
    channels: int = Field(default=0, description="Of sound.")
    timebase_hz: int = Field(default=1_000_000, description="Units of all times of the stream.")
    seed: int


class MediaChunk(Event):
    """One access unit, picture or packet of sound; its bytes come with it.

    `index` counts what this attachment was sent of the stream, +1 always.
    """

    type: Literal["media.chunk"] = "media.chunk"
    stream: str
    index: int = Field(ge=0)
    pts_us: int
    duration_us: int
    key: bool
    chunk: int = Field(description="The loop's chunk that the frame belongs to.")
    frame: int = Field(ge=0, description="Number of the frame in its chunk.")
    last: bool = Field(description="Whether it is the last frame of its chunk.")
    step: int
    discontinuity: bool = False
    dropped: int = Field(
        default=0, ge=0, description="Frames, or packets, skipped before this one."
    )
    size_bytes: int = Field(ge=0)
    rtp_timestamp: int | None = Field(
        default=None, ge=0, lt=2**32, description="On WebRTC: of the frame that carries the bytes."
    )
    data: bytes = Field(default=b"", exclude=True, repr=False)


class MediaComplete(Event):
    """A stream has ended; nothing of it comes after this."""

    type: Literal["media.complete"] = "media.complete"
    stream: str
    reason: str
    chunks: int
    size_bytes: int


class TextDelta(Event):
    """More text of an utterance: whole words, each with the space behind it.

    After `session.attached` the first one holds all of the newest utterance so far.
    """

    type: Literal["text.delta"] = "text.delta"
    stream: str
    text: str
    utterance: int = Field(ge=0, description="Its number; a higher one ends those before.")
    pts_us: int = Field(description="Media time of the session when it was said.")
    final: bool = Field(default=False, description="Whether the utterance ends with it.")
    cut: bool = Field(
        default=False, description="Whether the utterance was broken off: no more will come."
    )
    answers: str | None = Field(default=None, description="The push_text that it answers.")


# --- speech in input streams ---


class TurnStarted(Event):
    """Speech begins in the sound that a client pushes into a stream."""

    type: Literal["turn.started"] = "turn.started"
    stream: str
    pts_us: int = Field(description="Where in the stream, on the clock of the client that pushes.")
    interrupts: bool = Field(default=False, description="Whether it makes the model stop speaking.")


class TurnEnded(Event):
    """Speech has ended in the sound that a client pushes."""

    type: Literal["turn.ended"] = "turn.ended"
    stream: str
    pts_us: int
    duration_us: int = Field(ge=0)


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
