"""What a client is told of a session: its state, what it takes, and the limits that hold for it."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from reverie.sessions.protocol.event_base import Value


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


class SpeedView(Value):
    """How fast the model is on the server's machine, as measured when it was loaded."""

    makes_hz: float = Field(description="Pictures a second that it makes for one session.")
    declared_hz: float = Field(description="Pictures a second that its streams declare.")
    keeps_rate: bool = Field(description="Whether it makes as many as it declares.")


class LeadView(Value):
    """How far generation may be ahead of what the driver has seen: as far as the line needs."""

    least_chunks: int = Field(default=1, description="Chunks that may always be unseen.")
    most_ms: int = Field(default=0, description="The most media that may be unseen on any line.")
    allowed_ms: float = Field(
        default=0.0, description="What the line needs now; 0: no more than the least."
    )
    unseen_ms: float = Field(default=0.0, description="What is unseen now.")


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
    lead: LeadView = LeadView()
    recording: str | None = Field(default=None, description="The running recording, if any.")
    speed: SpeedView | None = Field(
        default=None, description="How fast the model is here; null where it was not measured."
    )


class LimitsView(Value):
    """The deployment's limits that a client can reach."""

    message_bytes: int
    commands_per_s: int
    prompt_chars: int
    recording: bool = Field(default=False, description="Whether the session can be recorded.")
    clip_s: float = Field(default=0.0, description="Seconds that are kept for clips; 0: none.")
