"""The first message of a socket: the client's token, role and codecs.

Nothing of a session is touched before the hello is complete and valid, and it has a time limit.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reverie.rtc.wire.errors import BadHelloError, BadMessageError
from reverie.rtc.wire.framing import refusal
from reverie.rtc.wire.strict_json import ROOT, command_id, parse_object
from reverie.sessions.protocol.commands import PROTOCOL, CommandId

PICTURES = ("h264", "jpeg", "rgb24")
SOUND = ("opus", "pcm16")
Codec = Literal["h264", "jpeg", "rgb24", "opus", "pcm16"]
Token = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_.~-]+$")]


class Hello(BaseModel):
    """A client's first message.

    Attributes:
        protocol: the version that the client speaks.
        token: the session's, or its watch token.
        role: a driver sends controls, and replaces the driver before it; viewers only watch.
        codecs: what the client can decode, best first; at least one for pictures, and one for sound
            if it wants sound.
        id: returned in the answer.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    type: Literal["hello"]
    protocol: int
    token: Token
    role: Literal["driver", "viewer"] = "driver"
    codecs: list[Codec] = Field(default=["h264", "jpeg"], min_length=1, max_length=8)
    id: CommandId = "hello"

    @property
    def picture_codec(self) -> str:
        """The best codec for pictures."""
        return next(codec for codec in self.codecs if codec in PICTURES)

    @property
    def sound_codec(self) -> str | None:
        """The best codec for sound; None: the client wants no sound."""
        return next((codec for codec in self.codecs if codec in SOUND), None)


def parse_hello(message: str | bytes) -> Hello:
    """Return the hello in a socket's first message.

    Raises:
        BadHelloError: names the problem; the code is `unsupported_protocol` for another protocol
            version.
    """
    try:
        return _hello(message)
    except BadMessageError as error:
        raise BadHelloError.of(error.refusal) from None


def _hello(message: str | bytes) -> Hello:
    if isinstance(message, bytes):
        text = "the first message must be a hello, as text; this one is binary"
        raise BadMessageError("binary_frame", text, field=ROOT)
    value = parse_object(message)
    if value.get("type") != "hello":
        text = "the first message must be a hello"
        raise BadMessageError("hello_expected", text, field="type", command=command_id(value))
    version = value.get("protocol")
    if type(version) is int and version != PROTOCOL:
        text = f"this server speaks protocol {PROTOCOL}"
        raise BadMessageError(
            "unsupported_protocol", text, field="protocol", command=command_id(value)
        )
    try:
        hello = Hello.model_validate(value)
    except ValidationError as error:
        raise refusal(error, value, Hello.model_fields) from None
    if not any(codec in PICTURES for codec in hello.codecs):
        text = f"codecs: name at least one for pictures: {', '.join(PICTURES)}"
        raise BadMessageError("out_of_range", text, field="codecs", command=hello.id)
    return hello
