"""Which session a request names, and what its token allows."""

from http import HTTPStatus

from starlette.requests import Request

from reverie.rtc.app_context import AppContext
from reverie.rtc.http.json_bodies import bearer_of
from reverie.rtc.wire.errors import HttpRefusedError
from reverie.sessions import Role, ServerSession


def authorized(context: AppContext, request: Request, session: str) -> tuple[ServerSession, Role]:
    """Return the session that a request names, and the most that its secret allows.

    The secret is the session's token, its watch token, or its owner's.

    Raises:
        HttpRefusedError: there is no secret.
        SessionEndedError: the session has ended.
        UnknownSessionError: there is no such session, or the secret belongs to another one.
    """
    secret = bearer_of(request)
    if secret is None:
        text = "a session needs its token: Authorization: Bearer <token>"
        raise HttpRefusedError(HTTPStatus.UNAUTHORIZED, "unauthorized", text, field="Authorization")
    for server_session in context.store.list(secret):
        if server_session.id == session:
            return server_session, Role.DRIVER
    return context.store.admit(session, secret)


def check_drives(role: Role) -> None:
    """Check that a role may drive.

    Raises:
        HttpRefusedError: the token only watches.
    """
    if role is not Role.DRIVER:
        text = "this token only watches"
        raise HttpRefusedError(HTTPStatus.FORBIDDEN, "read_only", text, field="Authorization")
