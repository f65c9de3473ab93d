"""HTTP, WebSocket and WebRTC for browsers and programs, LiveKit rooms, and the Python client.

A key press arrives in `websocket/endpoint.py`, which decides who may attach, and
`websocket/conversation.py`, which runs the two tasks of a socket. `wire/framing.py` decodes it, and
it goes to the session's `Attachment`; a frame leaves by the same way. `app.py` holds all routes,
`server.py` listens and drains, `origins.py` checks Host and Origin, `http/session_routes.py` opens
sessions, and `client/` is the other end. `docs/protocol.md` describes the protocol for people.
Imports sessions, gpu_pool and media; never engine, and of models only what describes them.
"""

from reverie.rtc.app import create_app
from reverie.rtc.app_context import AppContext
from reverie.rtc.client.connect import connect
from reverie.rtc.client.remote_session import RemoteSession
from reverie.rtc.options import ServerOptions
from reverie.rtc.server import Server
from reverie.rtc.wire.errors import (
    ConnectionLostError,
    RefusedError,
    RtcError,
    ServerError,
    ServerRefusedError,
)

__all__ = [
    "AppContext",
    "ConnectionLostError",
    "RefusedError",
    "RemoteSession",
    "RtcError",
    "Server",
    "ServerError",
    "ServerOptions",
    "ServerRefusedError",
    "connect",
    "create_app",
]
