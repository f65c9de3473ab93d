"""JSON over HTTP: request bodies, limited in size and time; objects and errors as responses."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import asdict
from http import HTTPStatus
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from reverie.models.contract.speed import MeasuredSpeed
from reverie.rtc.options import ServerOptions
from reverie.rtc.wire.errors import BadMessageError, HttpRefusedError
from reverie.rtc.wire.framing import refusal as refusal_of
from reverie.rtc.wire.strict_json import parse_object
from reverie.sessions.protocol.errors import Refusal

JsonObject = Mapping[str, object]
M = TypeVar("M", bound=BaseModel)


def json_response(
    body: BaseModel | JsonObject, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a JSON response, whose type browsers do not guess."""
    if isinstance(body, BaseModel):
        body = body.model_dump(mode="json")
    text = json.dumps(body, allow_nan=False)
    fixed = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
    return Response(text, status, {**fixed, **(headers or {})}, "application/json")


def speed_json(speed: MeasuredSpeed) -> JsonObject:
    """Return what was measured and chosen when a model was loaded."""
    return {
        "precision": speed.setting.precision,
        "threads": speed.setting.threads,
        "denoise_steps": speed.steps,
        "makes_hz": None if speed.makes_hz is None else round(speed.makes_hz, 2),
        "declared_hz": speed.declared_hz,
        "keeps_rate": speed.keeps_rate,
        "shortfall": speed.shortfall,
        "reason": speed.reason,
        "warning": speed.warning,
        "tried": [
            {
                "precision": tried.setting.precision,
                "threads": tried.setting.threads,
                "makes_hz": None if tried.rate_hz is None else round(tried.rate_hz, 2),
                "skipped": tried.skipped,
            }
            for tried in speed.tried
        ],
    }


def error_json(refusal: Refusal) -> JsonObject:
    """Return a refusal as JSON; all errors over HTTP look like this."""
    body = asdict(refusal)
    del body["command"]  # only messages of a socket or channel are commands
    return body


def error_response(status: int, refusal: Refusal) -> Response:
    """Return the response that tells of a refusal."""
    wait_s = refusal.retry_after_s
    headers = {} if wait_s is None else {"Retry-After": str(max(1, round(wait_s)))}
    if status == HTTPStatus.REQUEST_TIMEOUT:
        headers["Connection"] = "close"  # what still comes is no next request
    return json_response({"error": error_json(refusal)}, status, headers)


async def read_object(request: Request, options: ServerOptions) -> dict[str, object]:
    """Return the JSON object in the body of a request; without a body, an empty one.

    Raises:
        HttpRefusedError: the body is too large, too slow, or not declared as JSON.
        BadMessageError: the body is not one strict JSON object.
    """
    body = await read_body(request, options)
    if not body:
        return {}
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HttpRefusedError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "not_json", "the body must be application/json"
        )
    return parse_object(body)


def parsed(model: type[M], value: dict[str, object]) -> M:
    """Return the body of a request.

    Raises:
        BadMessageError: names the field that is wrong.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise refusal_of(error, value, model.model_fields) from None


def bearer_of(request: Request) -> str | None:
    """Return the token of an Authorization header; None when there is none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and 0 < len(token) <= 256 else None


async def read_body(request: Request, options: ServerOptions) -> bytes:
    """Return a request's body.

    Raises:
        HttpRefusedError: the body is too large or too slow.
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
        text = f"the body did not arrive within {options.request_timeout_s:g} s (request_timeout_s)"
        raise HttpRefusedError(HTTPStatus.REQUEST_TIMEOUT, "request_timeout", text) from None
    except ClientDisconnect:
        raise HttpRefusedError(
            HTTPStatus.BAD_REQUEST, "incomplete", "the body is incomplete"
        ) from None
    if len(body) > limit or int(declared) > limit:
        text = f"a body holds at most {limit} bytes (body_bytes)"
        raise HttpRefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large", text)
    return bytes(body)


def refused_response(error: HttpRefusedError | BadMessageError) -> Response:
    """Return the response that tells of a refusal."""
    status = error.status if isinstance(error, HttpRefusedError) else HTTPStatus.BAD_REQUEST
    return error_response(status, error.refusal)
