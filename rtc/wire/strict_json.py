"""Strict JSON: every oddity that Python's parser accepts is a typed error.

NaN, Infinity and numbers that do not fit (1e400, 5000 digits), duplicate keys, lone surrogates, a
byte order mark, deep nesting and anything but an object are refused, with the path of the field.
The parser's hooks do not know the path, so they put a marker in place of an oddity; a walk over the
result then finds the first marker.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Never

from reverie.rtc.wire.errors import BadMessageError

ROOT = "$"
"""The field that stands for the whole message."""

MAX_DEPTH = 32
MAX_VALUES = 10_000
"""Values in one message, so that checking each of them takes little time."""
MAX_DIGITS = 20
"""Enough for every 64-bit number; longer ones are out of range everywhere."""

_ID = re.compile(
    r'\s*\{(?:\s*"[^"\\]*"\s*:\s*(?:"[^"\\]*"|[-+.\w]+)\s*,)*?\s*"id"\s*:\s*"([^"\\]{1,64})"'
)
"""The id of an object that cannot be parsed, when no nested value comes before it."""

_NESTED = re.compile(r'(?:"((?:[^"\\]|\\.){1,64})"\s*:\s*)?(?:[\[{]\s*){2}')


@dataclass(frozen=True, slots=True)
class _Oddity:
    code: str
    message: str


def parse_object(data: str | bytes) -> dict[str, object]:
    """Return the JSON object in `data`.

    Raises:
        BadMessageError: `data` is no object, or holds an oddity; `field` is its path, and `command`
            the object's own `id` if it has a usable one.
    """
    value = _parse(_text(data))
    if not isinstance(value, dict):
        raise BadMessageError("not_an_object", "a message is one JSON object", field=ROOT)
    _refuse_oddities(value)
    return value


def parse_objects(data: str | bytes) -> list[dict[str, object]]:
    """Return the JSON object in `data`, or the objects of a list.

    Raises:
        BadMessageError: as `parse_object`.
    """
    value = _parse(_text(data))
    found: list[dict[str, object]] = []
    for each in value if isinstance(value, list) else [value]:
        if not isinstance(each, dict):
            text = "a message is one JSON object, or a list of objects"
            raise BadMessageError("not_an_object", text, field=ROOT)
        _refuse_oddities(each)
        found.append(each)
    return found


def command_id(value: Mapping[str, object]) -> str | None:
    """Return the `id` of a message if an answer can use it."""
    found = value.get("id")
    return found if isinstance(found, str) and 0 < len(found) <= 64 and found.isascii() else None


def _text(data: str | bytes) -> str:
    try:
        text = data if isinstance(data, str) else data.decode()
        if not _is_whole(text):  # the connection's markers for bytes that it could not decode
            text.encode(errors="surrogateescape").decode()
    except UnicodeError as error:
        at = f" at byte {error.start}" if isinstance(error, UnicodeDecodeError) else ""
        raise BadMessageError("not_utf8", f"not UTF-8{at}", field=ROOT) from None
    if text.startswith("\ufeff"):
        raise BadMessageError("byte_order_mark", "a message has no byte order mark", field=ROOT)
    return text


def _parse(text: str) -> object:
    try:
        value: object = json.loads(
            text,
            parse_int=_parse_int,
            parse_float=_parse_float,
            parse_constant=_parse_constant,
            object_pairs_hook=_parse_pairs,
        )
    except RecursionError:
        _too_deep(text)
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg} at character {error.pos}"
        raise BadMessageError("not_json", message, field=ROOT) from None
    return value


def _parse_int(digits: str) -> object:
    if len(digits) > MAX_DIGITS:
        return _Oddity("out_of_range", f"a number has at most {MAX_DIGITS} digits")
    return int(digits)


def _parse_float(digits: str) -> object:
    value = float(digits)
    return value if math.isfinite(value) else _parse_constant(digits)


def _parse_constant(name: str) -> object:
    return _Oddity("non_finite", f"{name[:24]} is not a finite number")


def _parse_pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in pairs:
        result[key] = (
            _Oddity("duplicate_key", "an object has one key twice") if key in result else value
        )
    return result


def _refuse_oddities(root: dict[str, object]) -> None:
    waiting: list[tuple[str, object, int]] = [("", root, 0)]
    seen = 0
    while waiting:
        path, value, depth = waiting.pop()
        seen += len(value) if isinstance(value, dict | list) else 0
        oddity = _oddity_of(value, depth, seen)
        if oddity is not None:
            raise BadMessageError(
                oddity.code, oddity.message, field=path[:200] or ROOT, command=command_id(root)
            )
        waiting.extend(
            (inner_path, inner, depth + 1) for inner_path, inner in _children(path, value)
        )


def _children(path: str, value: object) -> list[tuple[str, object]]:
    if isinstance(value, dict):
        found: list[tuple[str, object]] = []
        for key, inner in reversed(value.items()):
            inner_path = f"{path}.{printable(key)}" if path else printable(key)
            found.append((inner_path, inner if _is_whole(key) else key))
        return found
    if isinstance(value, list):
        return [(f"{path}[{at}]", value[at]) for at in reversed(range(len(value)))]
    return []


def _oddity_of(value: object, depth: int, seen: int) -> _Oddity | None:
    if depth > MAX_DEPTH:
        return _Oddity("too_deep", f"a message nests at most {MAX_DEPTH} levels")
    if seen > MAX_VALUES:
        return _Oddity("too_many_values", f"a message holds at most {MAX_VALUES} values")
    if isinstance(value, _Oddity):
        return value
    if isinstance(value, str) and not _is_whole(value):
        return _Oddity("bad_text", "text holds a lone surrogate (half of a character)")
    return None


def _is_whole(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def printable(key: str) -> str:
    """Return a key from outside in a form that can be sent back and logged."""
    return key[:64].encode("ascii", "backslashreplace").decode()


def _too_deep(text: str) -> Never:
    found = _NESTED.search(text)
    field = printable(found[1]) if found and found[1] else ROOT
    message = f"a message nests at most {MAX_DEPTH} levels"
    said = _ID.match(text)
    command = command_id({"id": said[1]}) if said else None
    raise BadMessageError("too_deep", message, field=field, command=command) from None
