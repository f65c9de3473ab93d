"""Whose session a request is about, and what its token lets it do."""

from http import HTTPStatus

from starlette.requests import Request

from reverie.rtc.edge import Edge
from reverie.rtc.errors import HttpRefusedError
from reverie.rtc.http_json import bearer_of
from reverie.sessions import HostedSession, Role


def authorized(edge: Edge, request: Request, session: str) -> tuple[HostedSession, Role]:
    """Return the session that a request names, and the most that its secret allows.

    The secret is the session's token, its watch token, or its owner's.

    Raises:
        HttpRefusedError: there is no secret.
        SessionEndedError: the session is over.
        UnknownSessionError: there is none of that id, or the secret is not its own.
    """
    secret = bearer_of(request)
    if secret is None:
        text = "a session needs its token: Authorization: Bearer <token>"
        raise HttpRefusedError(HTTPStatus.UNAUTHORIZED, "unauthorized", text, field="Authorization")
    for hosted in edge.store.list(secret):
        if hosted.id == session:
            return hosted, Role.DRIVER
    return edge.store.admit(session, secret)


def check_drives(role: Role) -> None:
    """Accept whoever may drive.

    Raises:
        HttpRefusedError: the token only watches.
    """
    if role is not Role.DRIVER:
        text = "this token only watches"
        raise HttpRefusedError(HTTPStatus.FORBIDDEN, "read_only", text, field="Authorization")
