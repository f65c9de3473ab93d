"""What a data packet on `world.input` may hold: one JSON object, or a list of them.

    {"key": "left", "edge": "press"}            a key goes down; `release` and `tap` likewise
    {"axes": {"look_x": 0.2}, "seq": 41}        axes move
    {"release_all": true}                       all keys are released

Each may have a `tag` of the sender's choice, which events about it repeat. Keys need the reliable
channel, because a lost release would hold a key for ever; axes may use the lossy channel, and
overtaken ones (`seq` not above the newest) are left out.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from reverie.rtc.livekit.errors import InputRefusedError, as_refusal
from reverie.rtc.wire.errors import BadMessageError
from reverie.rtc.wire.strict_json import ROOT, parse_objects
from reverie.sessions.protocol.commands import Name, Number

PACKET_INPUTS = 64
PACKET_BYTES = 16_384
"""About the size limit of a LiveKit packet."""

Tag = Annotated[str, Field(max_length=64)]


class _Input(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    tag: Tag | None = None


class RoomKeyInput(_Input):
    """A key goes down or up, or both.

    Attributes:
        control: the control that has the key; None takes the first.
    """

    key: Name
    edge: Literal["tap", "press", "release"] = "tap"
    control: Name | None = None


class RoomAxesInput(_Input):
    """Axes move.

    Attributes:
        seq: counter of the sender's moves; None: it is in order.
    """

    axes: dict[Name, Number] = Field(min_length=1, max_length=16)
    seq: Annotated[int, Field(ge=0, le=2**53)] | None = None


class RoomReleaseInput(_Input):
    """All keys are released."""

    release_all: Literal[True]


AnyInput = RoomKeyInput | RoomAxesInput | RoomReleaseInput

_SHAPES: dict[str, TypeAdapter[AnyInput]] = {
    "key": TypeAdapter(RoomKeyInput),
    "axes": TypeAdapter(RoomAxesInput),
    "release_all": TypeAdapter(RoomReleaseInput),
}


def parse_inputs(data: bytes, *, reliable: bool) -> Sequence[AnyInput]:
    """Return what a packet holds.

    Raises:
        InputRefusedError: the packet is malformed, or has a key on the lossy channel; none of its
            inputs count.
    """
    if len(data) > PACKET_BYTES:
        raise InputRefusedError(
            "too_large", f"a packet holds at most {PACKET_BYTES} bytes", field=ROOT
        )
    try:
        objects = parse_objects(data)
    except BadMessageError as error:
        raise InputRefusedError.of(error.refusal) from None
    if len(objects) > PACKET_INPUTS:
        raise InputRefusedError("too_many", f"a packet holds at most {PACKET_INPUTS}", field=ROOT)
    found = [_parse(each) for each in objects]
    if not reliable and any(not isinstance(each, RoomAxesInput) for each in found):
        message = "keys need the reliable channel; only axes may use the lossy one"
        raise InputRefusedError("unreliable_edge", message, field="edge")
    return found


def _parse(value: dict[str, object]) -> AnyInput:
    shape = next((name for name in _SHAPES if name in value), None)
    if shape is None:
        message = f"an input has one of: {', '.join(_SHAPES)}"
        raise InputRefusedError("missing", message, field=ROOT)
    try:
        return _SHAPES[shape].validate_python(value)
    except ValidationError as error:
        raise as_refusal(error) from None
