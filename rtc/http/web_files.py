"""The web client as HTTP: a fixed set of files of the package, found once, under fixed names.

Names from outside are looked up in that set and never joined to a path.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response

from reverie.rtc.http.json_bodies import error_response
from reverie.sessions.protocol.errors import Refusal

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}

INDEX = "index.html"

_HEADERS = {
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; "
        "frame-ancestors 'none'; base-uri 'self'"
    ),
}


@dataclass(frozen=True, slots=True)
class WebFile:
    """A file to serve.

    Attributes:
        tag: changes with the content; a browser sends it to ask whether its copy is current.
    """

    content: bytes
    media_type: str
    tag: str


class WebFiles:
    """Answers requests for the client's files."""

    def __init__(self, found: Mapping[str, WebFile]) -> None:
        self._files = found

    @classmethod
    def of_package(cls, package: str = "reverie.web_client") -> "WebFiles":
        """Read the client's files; blocks, so call it before serving."""
        return cls(dict(_walk(files(package), "")))

    async def index(self, request: Request) -> Response:
        """Answer `/`."""
        return self._answer(INDEX, request)

    async def file(self, request: Request) -> Response:
        """Answer `/static/{name}`."""
        return self._answer(str(request.path_params["name"]), request)

    def _answer(self, name: str, request: Request) -> Response:
        found = self._files.get(name)
        if found is None:
            return error_response(HTTPStatus.NOT_FOUND, Refusal("not_found", "no such file"))
        headers = {**_HEADERS, "ETag": found.tag}
        if request.headers.get("if-none-match") == found.tag:
            return Response(status_code=304, headers=headers)
        return Response(found.content, headers=headers, media_type=found.media_type)


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, WebFile]]:
    for entry in folder.iterdir():
        suffix = entry.name[entry.name.rfind(".") :]
        if entry.is_dir() and entry.name.isalnum():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        elif suffix in _TYPES:
            content = entry.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
            yield f"{prefix}{entry.name}", WebFile(content, _TYPES[suffix], tag)
