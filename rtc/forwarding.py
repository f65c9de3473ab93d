"""Undoes what a proxy in front of this server did to the path, host and scheme of a request.

A proxy may publish the server below a prefix (`server.root_path`), and either keep the prefix in
the path or take it away; both are understood. `X-Forwarded-Host`, `-Proto` and `-Prefix` count only
where the connection comes from a proxy that the deployment names (`server.trusted_proxies`),
because any client can write them. Of several values the last counts: the named proxy wrote it.
"""

import re

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from reverie.rtc.addresses import Addresses
from reverie.rtc.options import ServerOptions

PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)*")
"""A prefix of paths, without a slash at its end."""


def own_path(request: Request, path: str) -> str:
    """Return `path` as the client reaches it, below the prefix of the proxy."""
    return f"{request.scope.get('root_path', '')}{path}"


class ForwardedRequests:
    """Restores what the client asked the proxy for (ASGI middleware)."""

    def __init__(self, app: ASGIApp, options: ServerOptions) -> None:
        self._app = app
        self._root_path = options.root_path
        self._addresses = Addresses(options.trusted_proxies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a scope, below its prefix."""
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        scope, prefix = dict(scope), self._root_path
        if self._addresses.is_proxied(HTTPConnection(scope)):
            headers = Headers(scope=scope)
            _take_host(scope, headers)
            told = _last(headers, "x-forwarded-prefix").rstrip("/")
            prefix = told if told and PREFIX.fullmatch(told) else prefix
        if prefix and scope["type"] == "http" and scope["path"] == prefix:
            # The page names its files relative to its own folder, which needs the slash.
            return await RedirectResponse(f"{prefix}/")(scope, receive, send)
        if prefix:
            path = scope["path"]
            scope["root_path"] = prefix
            scope["path"] = path if path.startswith(f"{prefix}/") else f"{prefix}{path}"
        return await self._app(scope, receive, send)


def _take_host(scope: Scope, headers: Headers) -> None:
    host, scheme = _last(headers, "x-forwarded-host"), _last(headers, "x-forwarded-proto")
    if host:
        others = [pair for pair in scope["headers"] if pair[0] != b"host"]
        scope["headers"] = [(b"host", host.encode("latin-1")), *others]
    if scheme in ("http", "https"):
        secure = scheme == "https"
        schemes = ("ws", "wss") if scope["type"] == "websocket" else ("http", "https")
        scope["scheme"] = schemes[secure]


def _last(headers: Headers, name: str) -> str:
    return ",".join(headers.getlist(name)).rpartition(",")[2].strip()
