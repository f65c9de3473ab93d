"""Uploads: a picture or a clip as the body of a request, for an input stream of a session.

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
        """Feed a file to the loop; answer once the loop has all of it."""
        server_session, role = authorized(self._context, request, str(request.path_params["id"]))
        check_drives(role)
        accounts = self._context.accounts(request, server_session.state.owner)
        gone = False

        def disconnected() -> None:
            nonlocal gone
            gone = True
            _end(limit)

        try:
            async with asyncio.timeout(None) as limit:
                with self._places.held(Holder(accounts, lambda: _end(limit))) as has_place:
                    if not has_place:
                        raise self._too_many()
                    data = await self._body(request)
                    stream = str(request.path_params["stream"])
                    frames = await _while_connected(
                        request, server_session.inputs.feed(stream, data), disconnected
                    )
        except TimeoutError:
            raise (_incomplete() if gone else self._too_many()) from None
        except CommandError as error:
            status = _STATUS.get(ErrorCode(error.code), HTTPStatus.BAD_REQUEST)
            raise HttpRefusedError.of(error.refusal, status) from None
        return json_response({"frames": frames})

    def _too_many(self) -> HttpRefusedError:
        text = f"at most {self._places.limit} uploads may run at once (uploads)"
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
            limit_s = options.upload_timeout_s
            text = f"the upload did not arrive within {limit_s:g} s (upload_timeout_s)"
            raise HttpRefusedError(HTTPStatus.REQUEST_TIMEOUT, "request_timeout", text) from None
        except ClientDisconnect:
            raise _incomplete() from None
        if too_large:
            text = f"an upload holds at most {options.upload_bytes} bytes (upload_bytes)"
            raise HttpRefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large", text)
        return bytes(body)


async def _while_connected(
    request: Request, feeding: Coroutine[None, None, int], disconnected: Callable[[], None]
) -> int:
    """Feed while the client is connected; call `disconnected` when it is not any more.

    Raises:
        CommandError: the loop did not accept the file.
    """
    refused: CommandError | None = None
    frames = 0
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(_until_disconnected(request, disconnected), name="sender")
        try:
            frames = await feeding
        except CommandError as error:  # raised outside of the group
            refused = error
        watching.cancel()
    if refused is not None:
        raise refused
    return frames


async def _until_disconnected(request: Request, disconnected: Callable[[], None]) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    disconnected()


def _end(limit: asyncio.Timeout) -> None:
    if not limit.expired():
        limit.reschedule(asyncio.get_running_loop().time())


def _incomplete() -> HttpRefusedError:
    return HttpRefusedError(HTTPStatus.BAD_REQUEST, "incomplete", "the client disconnected")
