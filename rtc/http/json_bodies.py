"""JSON over HTTP: bodies in, within size and time; objects and typed errors out."""

import asyncio
import json
from collections.abc import Mapping
from http import HTTPStatus

from pydantic import BaseModel
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from reverie.rtc.options import ServerOptions
from reverie.rtc.wire.errors import BadMessageError, HttpRefusedError, RefusedError
from reverie.rtc.wire.strict_json import parse_object

JsonObject = Mapping[str, object]


def json_response(
    body: BaseModel | JsonObject, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a JSON response that no browser guesses another type for."""
    if isinstance(body, BaseModel):
        body = body.model_dump(mode="json")
    text = json.dumps(body, allow_nan=False)
    fixed = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
    return Response(text, status, {**fixed, **(headers or {})}, "application/json")


def error_body(
    code: str, message: str, field: str | None = None, retry_after_s: float | None = None
) -> JsonObject:
    """Return the body of an error; all errors look like this."""
    return {"error": _told(code, message, field, retry_after_s)}


def _told(code: str, message: str, field: str | None, retry_after_s: float | None) -> JsonObject:
    return {"code": code, "message": message, "field": field, "retry_after_s": retry_after_s}


def told_of(error: RefusedError) -> JsonObject:
    """Return what the body of an error says of a refusal."""
    return _told(error.code, error.message, error.field, error.retry_after_s)


def error_response(
    status: int,
    code: str,
    message: str,
    field: str | None = None,
    retry_after_s: float | None = None,
) -> Response:
    """Return the response of an error."""
    headers = {} if retry_after_s is None else {"Retry-After": str(max(1, round(retry_after_s)))}
    return json_response(error_body(code, message, field, retry_after_s), status, headers)


async def read_object(request: Request, options: ServerOptions) -> dict[str, object]:
    """Return the JSON object of a request's body; no body is an empty one.

    Raises:
        HttpRefusedError: it is too large, too slow, or not declared as JSON.
        BadMessageError: it is no JSON object as the protocol means it.
    """
    body = await read_body(request, options)
    if not body:
        return {}
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HttpRefusedError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "not_json", "the body has to be application/json"
        )
    return parse_object(body)


def bearer_of(request: Request) -> str | None:
    """Return the token of an Authorization header; None when there is none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and 0 < len(token) <= 256 else None


async def read_body(request: Request, options: ServerOptions) -> bytes:
    """Return a request's body.

    Raises:
        HttpRefusedError: it is too large, or too slow.
    """
    limit = options.body_bytes
    declared = request.headers.get("content-length", "0")
    body = bytearray()
    try:
        async with asyncio.timeout(options.request_timeout_s):
            if int(declared) <= limit:
                async for piece in request.stream():
                    body += piece
                    if len(body) > limit:
                        break
    except TimeoutError:
        text = f"the body did not come within {options.request_timeout_s:g} s (request_timeout_s)"
        raise HttpRefusedError(HTTPStatus.REQUEST_TIMEOUT, "request_timeout", text) from None
    except ClientDisconnect:
        raise HttpRefusedError(HTTPStatus.BAD_REQUEST, "incomplete", "half a body") from None
    if len(body) > limit or int(declared) > limit:
        text = f"a body holds at most {limit} bytes (body_bytes)"
        raise HttpRefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large", text)
    return bytes(body)


def refused_response(error: HttpRefusedError | BadMessageError) -> Response:
    """Return the response that tells of a refusal."""
    status = error.status if isinstance(error, HttpRefusedError) else HTTPStatus.BAD_REQUEST
    response = error_response(status, error.code, error.message, error.field, error.retry_after_s)
    if status == HTTPStatus.REQUEST_TIMEOUT:
        response.headers["Connection"] = "close"  # what still comes is no next request
    return response
