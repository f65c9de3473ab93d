"""Refusals over HTTP: every exception that refuses a request, as a status and an error."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from reverie.rtc.http.json_bodies import refused_response
from reverie.rtc.wire.errors import NO_SUCH_SESSION, BadMessageError, HttpRefusedError, too_many
from reverie.sessions import (
    BadRequestError,
    SessionEndedError,
    TooManyError,
    UnknownOwnerError,
    UnknownSessionError,
)

RETRY_S = 2.0
"""When to try again while models load or a worker restarts."""

Handler = Callable[[Request], Awaitable[Response]]


def with_typed_errors(handler: Handler) -> Handler:
    """Return the handler with its refusals answered in the form of all errors."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except REFUSALS as error:
            return refused_response(refusal_of(error))

    return answer


REFUSALS = (
    HttpRefusedError,
    BadMessageError,
    BadRequestError,
    UnknownOwnerError,
    TooManyError,
    UnknownSessionError,
    SessionEndedError,
)
"""The exceptions that refuse a request."""


def refusal_of(error: Exception) -> HttpRefusedError | BadMessageError:
    """Return the form over HTTP of one of `REFUSALS`."""
    match error:
        case HttpRefusedError() | BadMessageError():
            return error
        case BadRequestError():
            return HttpRefusedError.of(error.refusal)
        case UnknownOwnerError():
            return bad_owner(str(error))
        case TooManyError() | UnknownSessionError() | SessionEndedError():
            return _refused_by_store(error)
        case _:
            raise AssertionError(f"{type(error).__name__} is no refusal") from error


def _refused_by_store(
    error: TooManyError | UnknownSessionError | SessionEndedError,
) -> HttpRefusedError:
    if isinstance(error, UnknownSessionError):
        return HttpRefusedError(HTTPStatus.NOT_FOUND, "no_such_session", NO_SUCH_SESSION)
    if isinstance(error, TooManyError):
        own = error.what in ("sessions_per_owner", "sessions_per_address")
        status = HTTPStatus.TOO_MANY_REQUESTS if own else HTTPStatus.SERVICE_UNAVAILABLE
        return HttpRefusedError.of(too_many(error), status)
    if error.reason == "shutdown":
        return shutting_down()
    if error.reason in ("pool_full", "no_worker", "worker_lost"):
        return HttpRefusedError(
            HTTPStatus.SERVICE_UNAVAILABLE, error.reason, str(error), retry_after_s=RETRY_S
        )
    if error.reason == "model_unavailable":  # for good: an operator must look
        return HttpRefusedError(HTTPStatus.SERVICE_UNAVAILABLE, error.reason, str(error))
    return HttpRefusedError(HTTPStatus.GONE, error.reason, str(error))


def shutting_down() -> HttpRefusedError:
    """Return the refusal of a server that drains."""
    text = "the server is shutting down"
    return HttpRefusedError(HTTPStatus.SERVICE_UNAVAILABLE, "shutting_down", text, retry_after_s=5)


def bad_owner(text: str) -> HttpRefusedError:
    """Return the refusal of an owner that this server did not issue."""
    return HttpRefusedError(HTTPStatus.UNAUTHORIZED, "bad_owner", text, field="Authorization")
