"""From a decoded JSON object to a command, or to one error that names the field.

`rtc` refuses what is not a JSON object before this. Checked here are types, ranges and names that
do not depend on the session's program.
"""

from collections.abc import Mapping, Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from reverie.sessions.protocol.commands import COMMAND, FIELDS, AnyCommand
from reverie.sessions.protocol.error_text import sentence
from reverie.sessions.protocol.errors import BadRequestError, CommandError, ErrorCode

SHOWN_CHARS = 120
"""Of a refused value, in an error."""

_SHOWN = {str: "a text", dict: "an object", list: "a list", type(None): "null"}

LARGEST = 2**64
"""No field takes a number beyond it."""

_CODES = {
    "missing": ErrorCode.MISSING,
    "extra_forbidden": ErrorCode.UNKNOWN_FIELD,
    "union_tag_invalid": ErrorCode.UNKNOWN_COMMAND,
    "union_tag_not_found": ErrorCode.MISSING,
    "finite_number": ErrorCode.NON_FINITE,
    "string_too_long": ErrorCode.TOO_LONG,
    "too_long": ErrorCode.TOO_LONG,
    "string_unicode": ErrorCode.BAD_TEXT,
    "greater_than": ErrorCode.OUT_OF_RANGE,
    "greater_than_equal": ErrorCode.OUT_OF_RANGE,
    "less_than": ErrorCode.OUT_OF_RANGE,
    "less_than_equal": ErrorCode.OUT_OF_RANGE,
    "literal_error": ErrorCode.OUT_OF_RANGE,
    "string_too_short": ErrorCode.OUT_OF_RANGE,
    "string_pattern_mismatch": ErrorCode.OUT_OF_RANGE,
    "too_short": ErrorCode.OUT_OF_RANGE,
}


def parse_command(given: Mapping[str, object]) -> AnyCommand:
    """Return the command that `given` describes.

    Raises:
        CommandError: it describes none; names the first offending field.
    """
    try:
        return COMMAND.validate_python(dict(given))
    except ValidationError as error:
        details = error.errors(include_url=False)
        raise _as_command_error(details, given) from None


def check_opening(prompt: object, seed: object, parameters: object) -> None:
    """Check the request that opens a session by the rules for commands.

    Raises:
        BadRequestError: names the field that is of a wrong type, not finite or far out of range.
    """
    rules: tuple[tuple[str, dict[str, object], str], ...] = (
        ("push_text", {"text": prompt}, "prompt"),
        ("reset", {"seed": seed}, "seed"),
        ("update", {"parameters": parameters}, ""),
    )
    for type, fields, field in rules:
        try:
            parse_command({"type": type, "id": "opening", **fields})
        except CommandError as error:
            named = field or error.field or "parameters"
            message = named + error.message.removeprefix(error.field or named)
            raise BadRequestError(error.code, message, field=named) from None


def _as_command_error(details: Sequence[ErrorDetails], given: Mapping[str, object]) -> CommandError:
    first = _most_telling(details)
    code = _code(first)
    tagged = not first["type"].startswith("union_tag")
    field = _path(first["loc"][1:], given) if tagged else "type"
    message = _message(field, first, details)
    if code is ErrorCode.WRONG_TYPE:
        message = f"{message}, not {_shown(first['input'])}"
    said = given.get("id")
    command = said if isinstance(said, str) and 0 < len(said) <= 64 else None
    return CommandError(code, message, field=field, command=command)


def _message(field: str, first: ErrorDetails, details: Sequence[ErrorDetails]) -> str:
    if first["type"] == "union_tag_not_found":
        return f"type is missing; it is one of {', '.join(FIELDS)}"
    number = first["input"]
    if isinstance(number, int) and abs(number) > LARGEST:
        return f"{field} is too large a number"
    known = FIELDS.get(str(first["loc"][0]) if first["loc"] else "", ())
    at = [each for each in details if each["loc"][:3] == first["loc"][:3]]
    return sentence(field, first, fields=known, same=at)


def _most_telling(details: Sequence[ErrorDetails]) -> ErrorDetails:
    """Return the first error; of the members of one union, one that is not only a type error."""
    first = details[0]
    same_place = [each for each in details if each["loc"][:3] == first["loc"][:3]]
    for each in same_place:
        if _code(each) is not ErrorCode.WRONG_TYPE:
            return each
    return first


def _code(detail: ErrorDetails) -> ErrorCode:
    value = detail["input"]
    if isinstance(value, int) and abs(value) > LARGEST:
        return ErrorCode.OUT_OF_RANGE  # also where a number that large is not a float
    return _CODES.get(detail["type"], ErrorCode.WRONG_TYPE)


def _path(loc: Sequence[int | str], given: object) -> str:
    """Return pydantic's location without union members, which a client does not know."""
    path: list[str] = []
    for part in loc:
        if isinstance(given, Mapping):
            if path and part not in given:
                break
            given = given.get(part)
        elif isinstance(given, (list, tuple)) and isinstance(part, int):
            given = given[part] if part < len(given) else None
        elif path:
            break
        path.append(str(part)[:64].encode("ascii", "backslashreplace").decode())
    return ".".join(path) or "$"


def _shown(value: object) -> str:
    text = _SHOWN.get(type(value), "that")
    if isinstance(value, (bool, int, float)) and not (
        isinstance(value, int) and abs(value) > 2**64
    ):
        text = repr(value)
    return text[:SHOWN_CHARS]
