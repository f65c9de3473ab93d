"""The WebSocket endpoint: accept, read the hello, find the session, attach, run.

A client that is not admitted is told why by an `error` event, and by the code and reason of the
close.
"""

from contextlib import suppress
from dataclasses import replace

from starlette.websockets import WebSocket

from reverie.gpu_pool.wire.shares import Accounts
from reverie.media import AudioCodec, Codec
from reverie.rtc.app_context import AppContext
from reverie.rtc.websocket.conversation import SocketConversation
from reverie.rtc.websocket.handshake import Hello, parse_hello
from reverie.rtc.websocket.socket_peer import SocketPeer
from reverie.rtc.wire.errors import (
    NO_SUCH_SESSION,
    BadHelloError,
    NotAdmittedError,
    PeerLeftError,
    too_many,
)
from reverie.rtc.wire.framing import CloseCode, close_code, encode_event, error_event
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
from reverie.sessions.protocol.errors import Refusal
from reverie.sessions.protocol.events import SessionClosed


class WebSocketEndpoint:
    """Answers `/v1/sessions/{id}/ws`."""

    def __init__(self, context: AppContext) -> None:
        self._context = context

    async def open(self, socket: WebSocket) -> None:
        """Serve a WebSocket until it is closed."""
        with self._context.socket():
            accounts = self._context.accounts(socket)
            await self._serve(SocketPeer(socket), str(socket.path_params["id"]), accounts)

    async def _serve(self, peer: SocketPeer, session: str, accounts: Accounts) -> None:
        try:
            await peer.accept()
            hello = await self._read_hello(peer)
            attachment = self._attach(session, hello, accounts)
        except PeerLeftError:
            self._context.metrics.refused.labels("hello").inc()
        except NotAdmittedError as error:
            self._context.metrics.refused.labels("hello").inc()
            await _reject(peer, session, error)
        else:
            await self._run(peer, attachment)

    async def _run(self, peer: SocketPeer, attachment: Attachment) -> None:
        attached = self._context.metrics.attached.labels(attachment.role.value)
        attached.inc()
        attachment.round_trip.expected = True
        peer.on_round_trip(attachment.note_round_trip)
        try:
            await SocketConversation(
                peer, attachment, self._context.options, self._context.metrics
            ).run()
        finally:
            attached.dec()

    async def _read_hello(self, peer: SocketPeer) -> Hello:
        try:
            async with self._context.handshake():
                return parse_hello(await peer.receive())
        except BadHelloError as error:
            raise _refused(CloseCode.BAD_HELLO, error.refusal) from None
        except TimeoutError:
            if self._context.draining:
                raise _shutting_down() from None
            limit_s = self._context.options.hello_timeout_s
            text = f"no hello arrived within {limit_s:g} s (hello_timeout_s)"
            raise _refused(CloseCode.TIMEOUT, Refusal("hello_timeout", text)) from None

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
            refusal = Refusal("no_such_session", NO_SUCH_SESSION, command=hello.id)
            raise _refused(CloseCode.NO_SUCH_SESSION, refusal) from None
        except SessionEndedError as error:
            raise _ended(error) from None
        except TooManyError as error:
            refusal = replace(too_many(error), command=hello.id)
            raise _refused(CloseCode.TOO_MANY, refusal) from None


def _admit(context: AppContext, session: str, hello: Hello) -> ServerSession:
    """Return the session if the token allows the role.

    Raises:
        NotAdmittedError: the token only watches.
        SessionEndedError: the session has ended.
        UnknownSessionError: there is no such session, or the token belongs to another one.
    """
    server_session, allowed = context.store.admit(session, hello.token)
    if allowed is Role.VIEWER and hello.role == "driver":
        refusal = Refusal("bad_token", "this token only watches", "role", hello.id)
        raise _refused(CloseCode.BAD_TOKEN, refusal)
    return server_session


def _refused(code: CloseCode, refusal: Refusal) -> NotAdmittedError:
    return NotAdmittedError(code, refusal.code, error_event(refusal))


def _shutting_down() -> NotAdmittedError:
    return _refused(CloseCode.SHUTDOWN, Refusal("shutdown", "the server is shutting down"))


def _ended(error: SessionEndedError) -> NotAdmittedError:
    """Return the rejection of a client whose session has ended; it must open another one."""
    closed = SessionClosed(reason=error.reason, message=str(error))
    if close_code(error.reason) is CloseCode.SHUTDOWN:
        return NotAdmittedError(CloseCode.SHUTDOWN, error.reason, closed)
    return NotAdmittedError(CloseCode.NO_SUCH_SESSION, f"no_such_session: {error.reason}", closed)


async def _reject(peer: SocketPeer, session: str, error: NotAdmittedError) -> None:
    with suppress(PeerLeftError):
        await peer.send(encode_event(error.told.model_copy(update={"session": printable(session)})))
    await peer.close(error.code, error.reason)
