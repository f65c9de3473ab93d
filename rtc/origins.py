"""Checks of Host and Origin before anything else sees a request.

A page on another site can make a visitor's browser send requests to a server on the visitor's own
machine: WebSockets and simple POSTs need no permission, and an attacker can point a name at
127.0.0.1. So the Host must be one of our names, and an Origin must be our own or listed. Programs
that are not browsers send no Origin and pass; their tokens limit what they may do.
"""

from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reverie.rtc.http.json_bodies import error_response
from reverie.rtc.options import ServerOptions
from reverie.sessions.protocol.errors import Refusal

_PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE",
    "Access-Control-Allow-Headers": "authorization, content-type, if-match, range",
    "Access-Control-Max-Age": "600",
}

_TOLD = "Location, ETag, Link, Accept-Post, Retry-After, Accept-Ranges, Content-Range"


class TrustRules:
    """Decides which hosts and origins may use the server. No I/O."""

    def __init__(self, options: ServerOptions) -> None:
        names = {"localhost", options.host, *options.allowed_hosts}
        self._hosts = frozenset(name.lower() for name in names)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in options.allowed_origins)

    def refuses_host(self, host: str | None) -> bool:
        """Tell whether a Host header names another host, or none.

        An address is always accepted, because DNS rebinding needs a name.
        """
        name = _host_name(host)
        return name is None or not (_is_address(name) or name in self._hosts)

    def is_listed(self, origin: str) -> bool:
        """Tell whether a foreign origin is on the operator's list."""
        return origin.lower() in self._origins

    def refuses_origin(self, origin: str | None, host: str | None) -> bool:
        """Tell whether a page at `origin` may not use the server as `host`."""
        if origin is None or self.is_listed(origin):
            return False
        scheme, _, rest = origin.lower().partition("://")
        return scheme not in ("http", "https") or not rest or rest != (host or "").lower()


class OriginGuard:
    """Answers 403 for a foreign host or origin, before a socket is accepted (ASGI middleware)."""

    def __init__(self, app: ASGIApp, rules: TrustRules) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a scope, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        host, origin = headers.get("host"), headers.get("origin")
        if len(headers.getlist("host")) != 1 or self._rules.refuses_host(host):
            return await _refuse("foreign_host", "Host", scope, receive, send)
        if len(headers.getlist("origin")) > 1 or self._rules.refuses_origin(origin, host):
            return await _refuse("foreign_origin", "Origin", scope, receive, send)
        if origin is None or scope["type"] == "websocket" or not self._rules.is_listed(origin):
            return await self._app(scope, receive, send)
        if scope["method"] == "OPTIONS":
            headers_out = {**_PREFLIGHT, "Access-Control-Allow-Origin": origin, "Vary": "Origin"}
            return await Response(status_code=204, headers=headers_out)(scope, receive, send)
        return await self._app(scope, receive, _with_origin(send, origin))


def _with_origin(send: Send, origin: str) -> Send:
    async def send_with_origin(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["Access-Control-Allow-Origin"] = origin
            headers["Access-Control-Expose-Headers"] = _TOLD
            headers.add_vary_header("Origin")
        await send(message)

    return send_with_origin


async def _refuse(code: str, header: str, scope: Scope, receive: Receive, send: Send) -> None:
    message = f"this server does not answer for that {header}; see allowed_hosts, allowed_origins"
    await error_response(403, Refusal(code, message, header))(scope, receive, send)


def _host_name(host: str | None) -> str | None:
    if not host:
        return None
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port  # raises when it is no number
    except ValueError:
        return None
    return parts.hostname if "@" not in host and not parts.path else None


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
