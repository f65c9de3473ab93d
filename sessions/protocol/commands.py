"""What a client may ask of a session: one frozen model a command, the same on every transport.

A command is answered exactly once: `request.accepted`, or an `error` that names the field and
leaves the session as it was. Sizes that depend on the deployment (prompt length) or on the program
(control names, ranges) are checked by the session; what can be known here is refused here.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

PROTOCOL = 1
"""Version of this vocabulary; named in the first exchange."""

CommandId = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.:-]+$")]
Name = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.-]+$")]
Text = Annotated[str, Field(max_length=1_000_000)]
Count = Annotated[int, Field(ge=0, le=2**53)]
Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e9, le=1e9)]
Seed = Annotated[int, Field(ge=0, lt=2**53)]


CutReason = Literal["interrupt", "rewind", "reset", "restore", "act"]
"""What drops what was not seen; `session.interrupted` names it. `act`: a control that acts now."""

Act = Annotated[
    Literal["after", "now"],
    Field(
        description="after: behind what was made already; now: what would still wait at the client "
        "is taken back first. A client then sends its newest playhead before the command.",
    ),
]


class Command(BaseModel):
    """Base of all commands."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: CommandId = Field(description="Chosen by the client; the answer and the receipt name it.")


class PushText(Command):
    """Change the prompt, or say something to the model."""

    type: Literal["push_text"] = "push_text"
    text: Text
    mode: Literal["replace", "append", "turn"] = Field(
        default="replace",
        description="replace: this is now the whole prompt; append: it is added to the prompt; "
        "turn: it is said to the model, which answers.",
    )
    act: Act = "after"


class PushAction(Command):
    """Press, tap or release keys of the program's controls, or move its axes."""

    type: Literal["push_action"] = "push_action"
    action: dict[Name, Name | Number] = Field(
        min_length=1,
        max_length=16,
        description="A key or an amount for each control, such as {'move': 'left'}.",
    )
    edge: Literal["tap", "press", "release"] = Field(
        default="tap",
        description="tap acts for one step; press acts until the release. Axes ignore it.",
    )
    act: Act = "after"


class ReleaseAll(Command):
    """Release every held key."""

    type: Literal["release_all"] = "release_all"


class Update(Command):
    """Change parameters, and with them the prompt or the world, in one step."""

    type: Literal["update"] = "update"
    parameters: dict[Name, Number] = Field(default_factory=dict, max_length=32)
    prompt: Text | None = None
    reset: bool = False
    act: Act = "after"


class Interrupt(Command):
    """Drop what is unfinished or unseen, and continue from what was seen last."""

    type: Literal["interrupt"] = "interrupt"
    loop: Name | None = Field(
        default=None,
        description="One loop of the program; null: all. A loop of text stops speaking.",
    )


class Rewind(Command):
    """Continue from an earlier chunk that is still kept."""

    type: Literal["rewind"] = "rewind"
    chunk: Count


class Pause(Command):
    """Stop before the next step; idempotent."""

    type: Literal["pause"] = "pause"


class Resume(Command):
    """Continue; idempotent."""

    type: Literal["resume"] = "resume"


class Step(Command):
    """While paused, put out some chunks and stay paused."""

    type: Literal["step"] = "step"
    count: Annotated[int, Field(ge=1, le=1000)] = 1


class Reset(Command):
    """Begin again under the prompt now in effect."""

    type: Literal["reset"] = "reset"
    seed: Seed | None = None


class Snapshot(Command):
    """Keep the state after the newest shown chunk in memory."""

    type: Literal["snapshot"] = "snapshot"
    name: Name = "default"


class Restore(Command):
    """Continue from a snapshot."""

    type: Literal["restore"] = "restore"
    name: Name = "default"


class Playhead(Command):
    """What the viewer has seen. Comes with every chunk, so that only a wrong one is answered."""

    type: Literal["playhead"] = "playhead"
    chunk: Count = Field(description="The newest chunk of which every frame was shown.")
    pts_us: Count = Field(description="Media time of the newest frame that was shown.")
    waited_us: Count | None = Field(
        default=None,
        description="How long the first frame of that chunk had waited at the client, decoded, "
        "before it was shown; null: unknown.",
    )


class RequestKeyFrame(Command):
    """Ask for a frame that can be decoded without earlier ones."""

    type: Literal["request_key_frame"] = "request_key_frame"
    stream: Name = "video"


class PushMedia(Command):
    """Push a picture or a piece of sound into an input stream of the program.

    Its bytes come with it: on a WebSocket in a binary frame, behind this header. Answered when it
    is decoded and there is room for it, so that a client that waits for the answer is slowed and
    never refused. With `last` it also gets a receipt: for a single picture, or the end of a clip.
    """

    type: Literal["push_media"] = "push_media"
    stream: Name | None = Field(
        default=None, description="The input stream; null: the program's first that fits."
    )
    codec: Literal["jpeg", "png", "webp", "gif", "rgb24", "h264", "opus", "pcm16", "pcmf32"] = (
        Field(description="rgb24: rows without padding; pcm: little-endian, channels interleaved.")
    )
    pts_us: Count = Field(default=0, description="When it was taken, on the sender's own clock.")
    width: Annotated[int, Field(ge=0, le=2**16)] = Field(default=0, description="Of rgb24.")
    height: Annotated[int, Field(ge=0, le=2**16)] = Field(default=0, description="Of rgb24.")
    rate_hz: Annotated[int, Field(ge=0, le=2**20)] = Field(default=0, description="Of pcm.")
    channels: Annotated[int, Field(ge=0, le=64)] = Field(default=0, description="Of pcm.")
    last: bool = Field(default=False, description="A single picture, or the end of a clip.")
    data: bytes = Field(default=b"", exclude=True, repr=False)


class RecordStart(Command):
    """Record what the session puts out, until `record_stop` or the session's end."""

    type: Literal["record_start"] = "record_start"
    inputs: bool = Field(
        default=False,
        description="Also record the pictures that are pushed, to a file of their own.",
    )


class RecordStop(Command):
    """End the running recording."""

    type: Literal["record_stop"] = "record_stop"


class MakeClip(Command):
    """Keep the last seconds as a clip, as far as they are held in memory."""

    type: Literal["clip"] = "clip"
    seconds: Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)] = 10.0


class Close(Command):
    """End the session."""

    type: Literal["close"] = "close"


AnyCommand = Annotated[
    PushText
    | PushAction
    | ReleaseAll
    | Update
    | Interrupt
    | Rewind
    | Pause
    | Resume
    | Step
    | Reset
    | Snapshot
    | Restore
    | Playhead
    | RequestKeyFrame
    | PushMedia
    | RecordStart
    | RecordStop
    | MakeClip
    | Close,
    Field(discriminator="type"),
]

COMMAND: TypeAdapter[AnyCommand] = TypeAdapter(AnyCommand)
"""Validates a decoded JSON object into a command."""

FIELDS: Mapping[str, tuple[str, ...]] = {
    str(each.model_fields["type"].default): tuple(each.model_fields)
    for each in get_args(get_args(AnyCommand)[0])
}
"""What each command may hold, by its `type`."""
