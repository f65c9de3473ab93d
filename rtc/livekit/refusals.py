"""From what a checker of messages says to the refusal that the sender is told."""

from pydantic import ValidationError

from reverie.rtc.livekit.errors import SteeringError
from reverie.rtc.wire.strict_json import ROOT, printable
from reverie.sessions.protocol.errors import ErrorCode

_CODES = {
    "missing": ErrorCode.MISSING,
    "extra_forbidden": ErrorCode.UNKNOWN_FIELD,
    "string_too_long": ErrorCode.TOO_LONG,
}


def as_refusal(error: ValidationError) -> SteeringError:
    """Return the refusal for the first thing that is wrong with a message."""
    problem = error.errors(include_url=False, include_input=False)[0]
    path = ".".join(printable(str(part)) for part in problem["loc"])[:200]
    kind = problem["type"]
    code = _CODES.get(kind, ErrorCode.WRONG_TYPE if _is_of_type(kind) else ErrorCode.OUT_OF_RANGE)
    message = f"{path or 'the message'}: {problem['msg'][:1].lower()}{problem['msg'][1:]}"
    return SteeringError(code, message, field=path or ROOT)


def said(refusal: SteeringError) -> dict[str, object]:
    """Return a refusal in the form that it is told in."""
    return {
        "code": str(refusal.code),
        "message": refusal.message,
        "field": refusal.field,
        "retry_after_s": refusal.retry_after_s,
    }


def _is_of_type(kind: str) -> bool:
    return kind.endswith("_type")
