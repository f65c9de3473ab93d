"""What a session is, apart from sockets and models: its life, its commands and events, its people.

Start at `session.py` for what a program sees, at `hosted.py` for the server's side, and at
`commands.py` and `events.py` for the vocabulary. This room knows the pool by two protocols
(`leases.py`) and hands frames to `media`; it never imports `rtc`, and never runs a model.
"""

from reverie.sessions.attachment import Attachment, AttachOptions, Role
from reverie.sessions.commands import COMMAND, PROTOCOL, AnyCommand
from reverie.sessions.errors import (
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
from reverie.sessions.events import EVENT, AnyEvent
from reverie.sessions.hosted import HostedSession
from reverie.sessions.limits import SessionLimits
from reverie.sessions.local import LocalSession
from reverie.sessions.parsing import check_opening, parse_command
from reverie.sessions.pixels import to_picture
from reverie.sessions.samples import to_samples
from reverie.sessions.session import Session
from reverie.sessions.session_request import SessionRequest
from reverie.sessions.store import SessionStore, Ticket

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
    "HostedSession",
    "LocalSession",
    "NotPixelsError",
    "NotSamplesError",
    "Role",
    "Session",
    "SessionEndedError",
    "SessionError",
    "SessionLimits",
    "SessionRequest",
    "SessionStore",
    "Ticket",
    "TooManyError",
    "UnknownOwnerError",
    "UnknownSessionError",
    "check_opening",
    "parse_command",
    "to_picture",
    "to_samples",
]
