"""A picture or a clip as the body of a request, into an input stream of a session.

curl -T walk.mp4 -H "Authorization: Bearer $TOKEN" $SERVER/v1/sessions/$ID/inputs/clip
"""

import asyncio
from collections.abc import Callable, Coroutine
from http import HTTPStatus

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from reverie.rtc.app_context import AppContext
from reverie.rtc.http.auth import authorized, check_drives
from reverie.rtc.http.json_bodies import json_response
from reverie.rtc.shared_places import Holder, SharedPlaces
from reverie.rtc.wire.errors import HttpRefusedError
from reverie.sessions import CommandError
from reverie.sessions.protocol.errors import ErrorCode

RETRY_S = 5.0

_STATUS = {
    ErrorCode.UNKNOWN_STREAM: HTTPStatus.NOT_FOUND,
    ErrorCode.TOO_MANY: HTTPStatus.SERVICE_UNAVAILABLE,
    ErrorCode.CLOSED: HTTPStatus.GONE,
}


class UploadRoutes:
    """The handler of `/v1/sessions/{id}/inputs/{stream}`."""

    def __init__(self, context: AppContext) -> None:
        self._context = context
        self._places = SharedPlaces(context.options.uploads)

    async def put(self, request: Request) -> Response:
        """Take a file; answer when all of it is with the loop."""
        server_session, role = authorized(self._context, request, str(request.path_params["id"]))
        check_drives(role)
        accounts = self._context.accounts(request, server_session.state.owner)
        gone = False

        def hung_up() -> None:
            nonlocal gone
            gone = True
            _end(limit)

        try:
            async with asyncio.timeout(None) as limit:
                with self._places.held(Holder(accounts, lambda: _end(limit))) as is_let_in:
                    if not is_let_in:
                        raise self._too_many()
                    data = await self._body(request)
                    stream = str(request.path_params["stream"])
                    frames = await _while_there(request, server_session.feed(stream, data), hung_up)
        except TimeoutError:
            raise (_incomplete() if gone else self._too_many()) from None
        except CommandError as error:
            raise HttpRefusedError(
                _STATUS.get(ErrorCode(error.code), HTTPStatus.BAD_REQUEST),
                error.code,
                error.message,
                field=error.field,
                retry_after_s=error.retry_after_s,
            ) from None
        return json_response({"frames": frames})

    def _too_many(self) -> HttpRefusedError:
        text = f"at most {self._places.limit} uploads may be under way (uploads)"
        return HttpRefusedError(
            HTTPStatus.SERVICE_UNAVAILABLE, "too_many_uploads", text, retry_after_s=RETRY_S
        )

    async def _body(self, request: Request) -> bytes:
        options, body = self._context.options, bytearray()
        declared = request.headers.get("content-length", "0")
        too_large = int(declared) > options.upload_bytes
        try:
            async with asyncio.timeout(options.upload_timeout_s):
                async for piece in request.stream():
                    if too_large or len(body) + len(piece) > options.upload_bytes:
                        too_large = True
                        break
                    body += piece
        except TimeoutError:
            text = f"it did not come within {options.upload_timeout_s:g} s (upload_timeout_s)"
            raise HttpRefusedError(HTTPStatus.REQUEST_TIMEOUT, "request_timeout", text) from None
        except ClientDisconnect:
            raise _incomplete() from None
        if too_large:
            text = f"an upload holds at most {options.upload_bytes} bytes (upload_bytes)"
            raise HttpRefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large", text)
        return bytes(body)


async def _while_there(
    request: Request, feeding: Coroutine[None, None, int], hung_up: Callable[[], None]
) -> int:
    """Feed for as long as the sender stays; tell when it has gone.

    Raises:
        CommandError: it was not taken.
    """
    refused: CommandError | None = None
    frames = 0
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(_until_gone(request, hung_up), name="sender")
        try:
            frames = await feeding
        except CommandError as error:  # as it is, and not in a group
            refused = error
        watching.cancel()
    if refused is not None:
        raise refused
    return frames


async def _until_gone(request: Request, hung_up: Callable[[], None]) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    hung_up()


def _end(limit: asyncio.Timeout) -> None:
    if not limit.expired():
        limit.reschedule(asyncio.get_running_loop().time())


def _incomplete() -> HttpRefusedError:
    return HttpRefusedError(HTTPStatus.BAD_REQUEST, "incomplete", "its sender has hung up")
