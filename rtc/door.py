"""Where a WebSocket comes in: accept, hear its hello, find its session, attach, talk.

Whoever is not let in is told why: by an `error` event, and by the code and reason of the close.
"""

from contextlib import suppress

from starlette.websockets import WebSocket

from reverie.gpu_pool.shares import Accounts
from reverie.media import AudioCodec, Codec
from reverie.rtc.edge import Edge
from reverie.rtc.errors import BadHelloError, NotAdmittedError, PeerLeftError
from reverie.rtc.handshake import Hello, parse_hello
from reverie.rtc.peer import Peer
from reverie.rtc.strict_json import printable
from reverie.rtc.websocket import Conversation
from reverie.rtc.wire import CloseCode, close_code, encode_event
from reverie.sessions import (
    Attachment,
    AttachOptions,
    HostedSession,
    Role,
    SessionEndedError,
    TooManyError,
    UnknownSessionError,
)
from reverie.sessions.events import Error, SessionClosed


class Door:
    """Answers `/v1/sessions/{id}/ws`."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge

    async def open(self, socket: WebSocket) -> None:
        """Serve a WebSocket from its opening to its end."""
        with self._edge.socket():
            accounts = self._edge.accounts(socket)
            await self._receive(Peer(socket), str(socket.path_params["id"]), accounts)

    async def _receive(self, peer: Peer, session: str, accounts: Accounts) -> None:
        try:
            await peer.accept()
            hello = await self._greet(peer)
            attachment = self._attach(session, hello, accounts)
        except PeerLeftError:
            self._edge.metrics.refused.labels("hello").inc()
        except NotAdmittedError as error:
            self._edge.metrics.refused.labels("hello").inc()
            await _turn_away(peer, session, error)
        else:
            await self._talk(peer, attachment)

    async def _talk(self, peer: Peer, attachment: Attachment) -> None:
        attached = self._edge.metrics.attached.labels(attachment.role.value)
        attached.inc()
        try:
            await Conversation(peer, attachment, self._edge.options, self._edge.metrics).run()
        finally:
            attached.dec()

    async def _greet(self, peer: Peer) -> Hello:
        try:
            async with self._edge.greeting():
                return parse_hello(await peer.receive())
        except BadHelloError as error:
            told = Error(
                code=error.code, message=error.message, field=error.field, command=error.command
            )
            raise NotAdmittedError(CloseCode.BAD_HELLO, error.code, told) from None
        except TimeoutError:
            if self._edge.draining:
                raise _shutting_down() from None
            text = (
                f"no hello came within {self._edge.options.hello_timeout_s:g} s (hello_timeout_s)"
            )
            raise _refusal(CloseCode.TIMEOUT, "hello_timeout", text) from None

    def _attach(self, session: str, hello: Hello, accounts: Accounts) -> Attachment:
        options = AttachOptions(
            codec=Codec(hello.picture_codec),
            audio=AudioCodec(hello.sound_codec) if hello.sound_codec else None,
            message_bytes=self._edge.options.message_bytes,
            commands_per_s=self._edge.options.commands_per_s,
            accounts=accounts,
        )
        try:
            return _admit(self._edge, session, hello).attach(Role(hello.role), options)
        except UnknownSessionError:
            raise _refusal(
                CloseCode.NO_SUCH_SESSION,
                "no_such_session",
                "there is no such session here, or the token is none of its own",
                command=hello.id,
            ) from None
        except SessionEndedError as error:
            raise _ended(error) from None
        except TooManyError as error:
            reason, after_s = f"too_many_{error.what}", error.retry_after_s
            told = Error(code=reason, message=str(error), command=hello.id, retry_after_s=after_s)
            raise NotAdmittedError(CloseCode.TOO_MANY, reason, told) from None


def _admit(edge: Edge, session: str, hello: Hello) -> HostedSession:
    """Return the session if the token allows the role in it.

    Raises:
        NotAdmittedError: it only watches.
        SessionEndedError: the session is over.
        UnknownSessionError: there is none of that id, or the token is not its own.
    """
    hosted, allowed = edge.store.admit(session, hello.token)
    if allowed is Role.VIEWER and hello.role == "driver":
        text = "this token only watches"
        raise _refusal(CloseCode.BAD_TOKEN, "bad_token", text, field="role", command=hello.id)
    return hosted


def _refusal(
    code: CloseCode, reason: str, text: str, *, field: str | None = None, command: str | None = None
) -> NotAdmittedError:
    told = Error(code=reason, message=text, field=field, command=command)
    return NotAdmittedError(code, reason, told)


def _shutting_down() -> NotAdmittedError:
    return _refusal(CloseCode.SHUTDOWN, "shutdown", "the server is leaving")


def _ended(error: SessionEndedError) -> NotAdmittedError:
    """Return how to turn away somebody whose session is over: they need to open another."""
    closed = SessionClosed(reason=error.reason, message=str(error))
    if close_code(error.reason) is CloseCode.SHUTDOWN:
        return NotAdmittedError(CloseCode.SHUTDOWN, error.reason, closed)
    return NotAdmittedError(CloseCode.NO_SUCH_SESSION, f"no_such_session: {error.reason}", closed)


async def _turn_away(peer: Peer, session: str, error: NotAdmittedError) -> None:
    with suppress(PeerLeftError):
        await peer.send(encode_event(error.told.model_copy(update={"session": printable(session)})))
    await peer.close(error.code, error.reason)
