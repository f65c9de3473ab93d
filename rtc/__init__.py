"""The edges of the house: HTTP and WebSocket for browsers and programs, and the Python client.

A key press comes in at `door.py` (who may attach) and `websocket.py` (its two tasks), is read by
`wire.py`, and goes to the session's `Attachment`; a frame goes the same way out. `app.py` holds
all routes, `server.py` listens and drains, `origins.py` says who may ask, `rest.py` opens sessions,
`client.py` is the other end.
`docs/protocol.md` is the protocol for people. Imports sessions, gpu_pool and media; never engine,
and of models only what describes them.
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
