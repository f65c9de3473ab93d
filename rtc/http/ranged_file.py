"""A file of which a part may be asked for, with refusals in the form of all errors here."""

from http import HTTPStatus

from starlette.responses import FileResponse, Response
from starlette.types import Message, Receive, Scope, Send

from reverie.rtc.http.json_bodies import error_response

_REFUSALS = {
    HTTPStatus.BAD_REQUEST: "the Range header cannot be read: bytes=FIRST-LAST",
    HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE: "the file ends before that range begins",
}


class RangedFile(FileResponse):
    """Sends a file, or the part that `Range` names; else 400 or 416, `bad_range`."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        refusal: Response | None = None

        async def checked(message: Message) -> None:
            nonlocal refusal
            if message["type"] == "http.response.start" and message["status"] in _REFUSALS:
                refusal = _refusal(message)
            if refusal is None:
                await send(message)

        await super().__call__(scope, receive, checked)
        if refusal is not None:
            await refusal(scope, receive, send)


def _refusal(start: Message) -> Response:
    status = HTTPStatus(start["status"])
    refusal = error_response(status, "bad_range", _REFUSALS[status], "Range")
    for name, value in start["headers"]:
        if name.lower() == b"content-range":  # says how long the file is
            refusal.headers["Content-Range"] = value.decode("latin-1")
    return refusal
