"""The encoding of events and commands on a WebSocket, as in `docs/protocol.md`.

A text frame is one JSON object. A binary frame is a big-endian u32 with the length of a header, the
header (the JSON of a `media.chunk` from the server, of a `push_media` from a client), and the bytes
of the media.
"""

import json
import math
import struct
from collections.abc import Iterable
from dataclasses import asdict
from enum import IntEnum

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from reverie.rtc.wire.errors import BadMessageError
from reverie.rtc.wire.strict_json import ROOT, command_id, parse_object, printable
from reverie.sessions.protocol.commands import AnyCommand, PushMedia
from reverie.sessions.protocol.error_text import sentence
from reverie.sessions.protocol.errors import CommandError, ErrorCode, Refusal
from reverie.sessions.protocol.events import EVENT, AnyEvent, Error
from reverie.sessions.protocol.media_events import MediaChunk
from reverie.sessions.protocol.parsing import parse_command

_LENGTH = struct.Struct(">I")
MAX_HEADER_BYTES = 2**16


class CloseCode(IntEnum):
    """Why a socket was closed; the reason is the typed code, and more may follow after a colon."""

    OVER = 1000
    SHUTDOWN = 1001
    TOO_LARGE = 1009
    INTERNAL = 1011
    RESTART = 1012
    TRY_LATER = 1013
    BAD_HELLO = 4400
    BAD_TOKEN = 4401
    NO_SUCH_SESSION = 4404
    TIMEOUT = 4408
    REPLACED = 4409
    SLOW_VIEWER = 4413
    TOO_MANY = 4429


_CODES = {
    "shutdown": CloseCode.SHUTDOWN,
    "internal_error": CloseCode.INTERNAL,
    "idle": CloseCode.TIMEOUT,
    "replaced": CloseCode.REPLACED,
    "slow_viewer": CloseCode.SLOW_VIEWER,
    "too_many_attachments": CloseCode.TOO_MANY,
}


def close_code(reason: str) -> CloseCode:
    """Return the code to close a socket with, given why its attachment or session ended."""
    return _CODES.get(reason, CloseCode.OVER)


def encode_event(event: AnyEvent) -> str | bytes:
    """Return the WebSocket message of an event: bytes for media, text for all else.

    Numbers that are not finite become null, because JSON has none and browsers refuse Python's.
    """
    text = encode_text(event)
    if not isinstance(event, MediaChunk):
        return text
    header = text.encode()
    return b"".join((_LENGTH.pack(len(header)), header, event.data))


def encode_text(event: AnyEvent) -> str:
    """Return the JSON of an event; of a chunk, without its bytes."""
    text = event.model_dump_json()
    if "NaN" in text or "Infinity" in text:
        text = json.dumps(_finite(event.model_dump(mode="python")), allow_nan=False)
    return text


def decode_event(message: str | bytes) -> AnyEvent:
    """Return the event of a WebSocket message; the other half of `encode_event`.

    Raises:
        BadMessageError: the message is no event of this protocol.
    """
    if isinstance(message, str):
        return _validated(EVENT, message)
    header, data = _split(message)
    event = _validated(EVENT, header.decode())
    if not isinstance(event, MediaChunk):
        raise BadMessageError("bad_frame", "a binary frame carries media only")
    return event.model_copy(update={"data": data})


def encode_command(command: AnyCommand) -> str | bytes:
    """Return the WebSocket message of a command: bytes for media, text for all else."""
    text = command.model_dump_json(exclude_none=True)
    if not isinstance(command, PushMedia):
        return text
    header = text.encode()
    return b"".join((_LENGTH.pack(len(header)), header, command.data))


def decode_command(message: str | bytes) -> AnyCommand:
    """Return the command in a client's WebSocket message.

    Raises:
        BadMessageError: names the first problem, its field, and the command's id if it has one.
    """
    try:
        if isinstance(message, bytes):
            return _pushed(message)
        return parse_command(parse_object(message))
    except CommandError as error:
        raise BadMessageError.of(error.refusal) from None


def _pushed(message: bytes) -> PushMedia:
    try:
        header, data = _split(message)
    except BadMessageError as error:
        raise BadMessageError("binary_frame", error.message, field=ROOT) from None
    given = parse_object(header)
    if given.get("type") != "push_media":
        text = "a client's binary frames carry push_media only"
        raise BadMessageError("binary_frame", text, field=ROOT, command=command_id(given))
    if "data" in given:
        text = "the bytes follow the header"
        raise BadMessageError("unknown_field", text, field="data", command=command_id(given))
    command = parse_command(given)
    assert isinstance(command, PushMedia), "its type says so"
    return command.model_copy(update={"data": data})


def _split(message: bytes) -> tuple[bytes, bytes]:
    """Return the header and the bytes of a binary frame."""
    if len(message) < _LENGTH.size:
        raise BadMessageError("bad_frame", "a binary frame is shorter than its length field")
    (length,) = _LENGTH.unpack_from(message)
    end = _LENGTH.size + length
    if length > MAX_HEADER_BYTES or end > len(message):
        raise BadMessageError("bad_frame", "a binary frame is shorter than its header")
    return message[_LENGTH.size : end], message[end:]


def refusal(
    error: ValidationError, value: dict[str, object], fields: Iterable[str] = ()
) -> BadMessageError:
    """Return the error that tells the sender why pydantic refused a message.

    Args:
        error: pydantic's.
        value: the message.
        fields: the fields that it may hold.
    """
    first = error.errors(include_url=False, include_input=False)[0]
    field = _path_of(first, value)
    return BadMessageError(
        _code_of(first["type"]),
        sentence(field, first, fields=tuple(fields)),
        field=field,
        command=command_id(value),
    )


def error_event(refusal: Refusal) -> Error:
    """Return the event that tells of a refusal."""
    return Error(**asdict(refusal))


def _validated(adapter: TypeAdapter[AnyEvent], text: str) -> AnyEvent:
    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        raise BadMessageError("bad_event", str(error)[:200]) from None


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value


def _code_of(kind: str) -> str:
    if kind in ("missing", "extra_forbidden"):
        return ErrorCode.MISSING if kind == "missing" else ErrorCode.UNKNOWN_FIELD
    if kind.endswith("too_long"):
        return ErrorCode.TOO_LONG
    return ErrorCode.WRONG_TYPE if kind.endswith("_type") else ErrorCode.OUT_OF_RANGE


def _path_of(first: ErrorDetails, value: dict[str, object]) -> str:
    path: list[str] = []
    here: object = value
    for part in first["loc"]:
        if isinstance(here, dict) and part in here:
            here = here[part]
        elif isinstance(here, dict) and first["type"] == "missing":
            here = None
        else:
            break  # the rest is the name of an internal type
        path.append(printable(str(part)))
    return ".".join(path) or ROOT
