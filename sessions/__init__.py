"""What a session is, apart from sockets and models: its phases, commands, events and clients.

Start at `client/session.py` for what a program sees, at `runtime/server_session.py` for the
server's side, and at `protocol/commands.py` and `protocol/events.py` for the vocabulary. This
package knows the pool by two protocols (`backend/session_backend.py`) and hands frames to `media`;
it never imports `rtc`, and never runs a model.
"""

from reverie.sessions.attachments.attachment import Attachment, AttachOptions, Role
from reverie.sessions.client.decode import to_picture, to_samples
from reverie.sessions.client.local_session import LocalSession
from reverie.sessions.client.session import Session
from reverie.sessions.protocol.commands import COMMAND, PROTOCOL, AnyCommand
from reverie.sessions.protocol.errors import (
    AttachmentEndedError,
    BadRequestError,
    CommandError,
    ErrorCode,
    NotPixelsError,
    NotSamplesError,
    SessionEndedError,
    SessionError,
    TooManyError,
    UnknownOwnerError,
    UnknownSessionError,
)
from reverie.sessions.protocol.events import EVENT, AnyEvent
from reverie.sessions.protocol.parsing import check_opening, parse_command
from reverie.sessions.runtime.server_session import ServerSession
from reverie.sessions.runtime.session_registry import SessionCredentials
from reverie.sessions.runtime.session_request import SessionRequest
from reverie.sessions.runtime.session_store import SessionStore
from reverie.sessions.state.limits import SessionLimits

__all__ = [
    "COMMAND",
    "EVENT",
    "PROTOCOL",
    "AnyCommand",
    "AnyEvent",
    "AttachOptions",
    "Attachment",
    "AttachmentEndedError",
    "BadRequestError",
    "CommandError",
    "ErrorCode",
    "LocalSession",
    "NotPixelsError",
    "NotSamplesError",
    "Role",
    "ServerSession",
    "Session",
    "SessionCredentials",
    "SessionEndedError",
    "SessionError",
    "SessionLimits",
    "SessionRequest",
    "SessionStore",
    "TooManyError",
    "UnknownOwnerError",
    "UnknownSessionError",
    "check_opening",
    "parse_command",
    "to_picture",
    "to_samples",
]
