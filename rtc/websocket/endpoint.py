"""Where a WebSocket comes in: accept, hear its hello, find its session, attach, talk.

Whoever is not let in is told why: by an `error` event, and by the code and reason of the close.
"""

from contextlib import suppress

from starlette.websockets import WebSocket

from reverie.gpu_pool.wire.shares import Accounts
from reverie.media import AudioCodec, Codec
from reverie.rtc.app_context import AppContext
from reverie.rtc.websocket.conversation import SocketConversation
from reverie.rtc.websocket.handshake import Hello, parse_hello
from reverie.rtc.websocket.socket_peer import SocketPeer
from reverie.rtc.wire.errors import BadHelloError, NotAdmittedError, PeerLeftError
from reverie.rtc.wire.framing import CloseCode, close_code, encode_event
from reverie.rtc.wire.strict_json import printable
from reverie.sessions import (
    Attachment,
    AttachOptions,
    Role,
    ServerSession,
    SessionEndedError,
    TooManyError,
    UnknownSessionError,
)
from reverie.sessions.protocol.events import Error, SessionClosed


class WebSocketEndpoint:
    """Answers `/v1/sessions/{id}/ws`."""

    def __init__(self, context: AppContext) -> None:
        self._context = context

    async def open(self, socket: WebSocket) -> None:
        """Serve a WebSocket from its opening to its end."""
        with self._context.socket():
            accounts = self._context.accounts(socket)
            await self._receive(SocketPeer(socket), str(socket.path_params["id"]), accounts)

    async def _receive(self, peer: SocketPeer, session: str, accounts: Accounts) -> None:
        try:
            await peer.accept()
            hello = await self._greet(peer)
            attachment = self._attach(session, hello, accounts)
        except PeerLeftError:
            self._context.metrics.refused.labels("hello").inc()
        except NotAdmittedError as error:
            self._context.metrics.refused.labels("hello").inc()
            await _turn_away(peer, session, error)
        else:
            await self._talk(peer, attachment)

    async def _talk(self, peer: SocketPeer, attachment: Attachment) -> None:
        attached = self._context.metrics.attached.labels(attachment.role.value)
        attached.inc()
        try:
            await SocketConversation(
                peer, attachment, self._context.options, self._context.metrics
            ).run()
        finally:
            attached.dec()

    async def _greet(self, peer: SocketPeer) -> Hello:
        try:
            async with self._context.greeting():
                return parse_hello(await peer.receive())
        except BadHelloError as error:
            told = Error(
                code=error.code, message=error.message, field=error.field, command=error.command
            )
            raise NotAdmittedError(CloseCode.BAD_HELLO, error.code, told) from None
        except TimeoutError:
            if self._context.draining:
                raise _shutting_down() from None
            limit_s = self._context.options.hello_timeout_s
            text = f"no hello came within {limit_s:g} s (hello_timeout_s)"
            raise _refusal(CloseCode.TIMEOUT, "hello_timeout", text) from None

    def _attach(self, session: str, hello: Hello, accounts: Accounts) -> Attachment:
        options = AttachOptions(
            codec=Codec(hello.picture_codec),
            audio=AudioCodec(hello.sound_codec) if hello.sound_codec else None,
            message_bytes=self._context.options.message_bytes,
            commands_per_s=self._context.options.commands_per_s,
            accounts=accounts,
        )
        try:
            return _admit(self._context, session, hello).attach(Role(hello.role), options)
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


def _admit(context: AppContext, session: str, hello: Hello) -> ServerSession:
    """Return the session if the token allows the role in it.

    Raises:
        NotAdmittedError: it only watches.
        SessionEndedError: the session is over.
        UnknownSessionError: there is none of that id, or the token is not its own.
    """
    server_session, allowed = context.store.admit(session, hello.token)
    if allowed is Role.VIEWER and hello.role == "driver":
        text = "this token only watches"
        raise _refusal(CloseCode.BAD_TOKEN, "bad_token", text, field="role", command=hello.id)
    return server_session


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


async def _turn_away(peer: SocketPeer, session: str, error: NotAdmittedError) -> None:
    with suppress(PeerLeftError):
        await peer.send(encode_event(error.told.model_copy(update={"session": printable(session)})))
    await peer.close(error.code, error.reason)
