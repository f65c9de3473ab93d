"""A picture or a clip as the body of a request, into an input stream of a session.

curl -T walk.mp4 -H "Authorization: Bearer $TOKEN" $SERVER/v1/sessions/$ID/inputs/clip
"""

import asyncio
from http import HTTPStatus

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from reverie.rtc.access import authorized, check_drives
from reverie.rtc.edge import Edge
from reverie.rtc.errors import HttpRefusedError
from reverie.rtc.http_json import json_response
from reverie.sessions import CommandError
from reverie.sessions.errors import ErrorCode

_STATUS = {
    ErrorCode.UNKNOWN_STREAM: HTTPStatus.NOT_FOUND,
    ErrorCode.TOO_MANY: HTTPStatus.SERVICE_UNAVAILABLE,
    ErrorCode.CLOSED: HTTPStatus.GONE,
}


class UploadRoutes:
    """The handler of `/v1/sessions/{id}/inputs/{stream}`."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge
        self._under_way = 0

    async def put(self, request: Request) -> Response:
        """Take a file; answer when all of it is with the loop."""
        hosted, role = authorized(self._edge, request, str(request.path_params["id"]))
        check_drives(role)
        limit = self._edge.options.uploads
        if self._under_way >= limit:
            text = f"at most {limit} uploads may be under way (uploads)"
            raise HttpRefusedError(
                HTTPStatus.SERVICE_UNAVAILABLE, "too_many_uploads", text, retry_after_s=5.0
            )
        self._under_way += 1
        try:
            data = await self._body(request)
            frames = await hosted.feed(str(request.path_params["stream"]), data)
        except CommandError as error:
            raise HttpRefusedError(
                _STATUS.get(ErrorCode(error.code), HTTPStatus.BAD_REQUEST),
                error.code,
                error.message,
                field=error.field,
                retry_after_s=error.retry_after_s,
            ) from None
        finally:
            self._under_way -= 1
        return json_response({"frames": frames})

    async def _body(self, request: Request) -> bytes:
        options, body = self._edge.options, bytearray()
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
            raise HttpRefusedError(HTTPStatus.BAD_REQUEST, "incomplete", "half a body") from None
        if too_large:
            text = f"an upload holds at most {options.upload_bytes} bytes (upload_bytes)"
            raise HttpRefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large", text)
        return bytes(body)
