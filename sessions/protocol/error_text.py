"""What a client is told about a field that the validation refused: its name, and what it may be.

The library's own texts speak of discriminators, unions and validation; these speak of the message.
"""

import re
from collections.abc import Sequence
from typing import Final

from pydantic_core import ErrorDetails

LISTED = 24
"""Names in one sentence."""

_KINDS: Final = {
    "string_type": "a text",
    "string_unicode": "a text without halves of characters (lone surrogates)",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "dict_type": "an object",
    "list_type": "a list",
    "finite_number": "a finite number",
}

_RULES: Final = {
    "greater_than": "is above {gt}",
    "greater_than_equal": "is at least {ge}",
    "less_than": "is below {lt}",
    "less_than_equal": "is at most {le}",
    "literal_error": "is one of {expected}",
    "string_too_short": "holds at least {min_length} character",
    "string_too_long": "holds at most {max_length} characters",
    "too_short": "holds at least {min_length} entry",
    "too_long": "holds at most {max_length} entries",
    "union_tag_invalid": "is one of {expected_tags}",
}

_LETTERS = re.compile(r"^\^\[A-Za-z0-9(?P<others>.+)\]\+\$$")
"""The form of every pattern of this protocol."""


def sentence(
    field: str,
    detail: ErrorDetails,
    *,
    fields: Sequence[str] = (),
    same: Sequence[ErrorDetails] = (),
) -> str:
    """Return what is wrong with a field.

    Args:
        field: its path, as the sender knows it.
        detail: what the validation found, with its context.
        fields: what the object may hold, for a field that it may not.
        same: everything found at that field, when it may be one of several kinds.
    """
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "missing":
        return f"{field} is missing"
    if kind == "extra_forbidden":
        return f"there is no field {field!r} here" + (
            f"; known: {_listed(fields)}" if fields else ""
        )
    if kind == "string_pattern_mismatch":
        return f"{field} {_letters(str(context.get('pattern', '')))}"
    if kind in _RULES:
        return f"{field} {_RULES[kind].format_map(context)}"
    kinds = dict.fromkeys(
        _KINDS[each["type"]] for each in (*same, detail) if each["type"] in _KINDS
    )
    return f"{field} is {' or '.join(kinds)}" if kinds else f"{field} is out of range"


def _letters(pattern: str) -> str:
    found = _LETTERS.match(pattern)
    if found is None:
        return "holds a character that it may not"
    return f"is made of letters, digits and {' '.join(found['others'])}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:LISTED])
