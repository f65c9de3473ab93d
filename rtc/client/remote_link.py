"""A client's connection to a session: hello, commands and events, reconnects after a drop.

A drop does not end a session: the server keeps it for its grace time, so the link attaches again
with the same token until it succeeds, the server says that the session has ended, or time is up.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from ssl import SSLContext
from typing import Literal

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.http11 import Response

from reverie.gpu_pool.wire.backoff import Backoff
from reverie.rtc.wire.errors import BadMessageError, ConnectionLostError
from reverie.rtc.wire.framing import CloseCode, decode_event
from reverie.rtc.wire.strict_json import parse_object
from reverie.sessions.protocol.commands import PROTOCOL
from reverie.sessions.protocol.errors import Refusal
from reverie.sessions.protocol.events import AnyEvent

FINAL = frozenset(
    {
        CloseCode.OVER,
        CloseCode.TOO_LARGE,
        CloseCode.BAD_HELLO,
        CloseCode.BAD_TOKEN,
        CloseCode.NO_SUCH_SESSION,
        CloseCode.TIMEOUT,
        CloseCode.REPLACED,
        CloseCode.TOO_MANY,
    }
)
"""Close codes after which the link must not attach again, or cannot."""

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 2.0

LOST = 1006
"""Stands for a socket that ended without a close frame."""


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """How a client attaches.

    Attributes:
        url: of the session's WebSocket.
        codecs: best first.
        give_up_s: how long to try to reconnect after a drop.
        open_s: for one attempt.
        message_bytes: longest message that is accepted.
        ssl: which certificates to trust at a `wss` address.
    """

    url: str
    token: str
    role: Literal["driver", "viewer"] = "driver"
    codecs: tuple[str, ...] = ("rgb24", "pcm16")
    give_up_s: float = 30.0
    open_s: float = 10.0
    message_bytes: int = 2**28
    ssl: SSLContext | None = None

    def hello(self) -> str:
        """Return the first message of a socket."""
        return json.dumps(
            {
                "type": "hello",
                "protocol": PROTOCOL,
                "token": self.token,
                "role": self.role,
                "codecs": list(self.codecs),
            }
        )


@dataclass(frozen=True, slots=True)
class LinkEnding:
    """Why a link has ended: the typed code, and the server's message."""

    code: int
    reason: str
    message: str = ""


class RemoteLink:
    """One attachment to a session on a server, over one socket after another.

    Args:
        take: called with every event, in order.
        dropped: called when a socket is lost and another will be tried; commands on the lost socket
            may never be answered.
    """

    def __init__(
        self,
        options: LinkOptions,
        take: Callable[[AnyEvent], None],
        dropped: Callable[[], None],
    ) -> None:
        self.drops = 0
        self._options = options
        self._take = take
        self._dropped = dropped
        self._socket: ClientConnection | None = None
        self._attached = asyncio.Event()

    async def run(self) -> LinkEnding:
        """Stay attached; return when the attachment has ended for good.

        When cancelled, close the socket; the session stays, as after any drop.
        """
        try:
            return await self._stay()
        finally:
            self._attached.set()  # a waiting `send` learns that there will be no socket

    async def _stay(self) -> LinkEnding:
        loop, backoff = asyncio.get_running_loop(), Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S)
        deadline_s = loop.time() + self._options.give_up_s
        while True:
            ending, was_attached = await self._once()
            final = ending.code in FINAL
            if was_attached and not final:
                self._dropped()
            if was_attached:
                self.drops += 1
                deadline_s = loop.time() + self._options.give_up_s
                backoff.restart()
            if final or loop.time() + backoff.pause_s > deadline_s:
                return ending
            await asyncio.sleep(backoff.take())

    async def send(self, text: str | bytes) -> None:
        """Send a message; wait for a socket while there is none.

        Raises:
            ConnectionLostError: there was none in time, or it broke.
        """
        try:
            async with asyncio.timeout(self._options.give_up_s):
                await self._attached.wait()
                if self._socket is None:
                    raise ConnectionLostError("the attachment has ended")
                await self._socket.send(text)
        except TimeoutError:
            raise ConnectionLostError("the server could not be reached in time") from None
        except ConnectionClosed:
            raise ConnectionLostError("the connection broke while a command was sent") from None

    async def _once(self) -> tuple[LinkEnding, bool]:
        attached, closed = False, None
        try:
            async with connect(
                self._options.url,
                max_size=self._options.message_bytes,
                open_timeout=self._options.open_s,
                close_timeout=1.0,
                compression=None,
                proxy=None,
                ssl=self._options.ssl,
            ) as socket:
                await socket.send(self._options.hello())
                while True:
                    event = decode_event(await socket.recv())
                    if event.type == "session.attached":
                        attached, self._socket = True, socket
                        self._attached.set()
                    if event.type == "session.closed":
                        closed = LinkEnding(CloseCode.OVER, event.reason, event.message)
                    self._take(event)
        except ConnectionClosed as error:
            return closed or _ending_of_close(error), attached
        except InvalidStatus as error:
            return _ending_of_refusal(error.response), attached
        except (OSError, TimeoutError, InvalidHandshake) as error:
            return LinkEnding(LOST, "unreachable", str(error)), attached
        except BadMessageError as error:
            return LinkEnding(CloseCode.BAD_HELLO, error.code, error.message), attached
        finally:
            if attached:
                self._attached.clear()
                self._socket = None


def _ending_of_close(error: ConnectionClosed) -> LinkEnding:
    if error.rcvd is None:
        return LinkEnding(LOST, "connection_lost", "the connection broke")
    reason, _, message = error.rcvd.reason.partition(": ")
    return LinkEnding(error.rcvd.code, reason, message)


def _ending_of_refusal(response: Response) -> LinkEnding:
    passing = response.status_code >= 500
    code = CloseCode.TRY_LATER if passing else CloseCode.BAD_HELLO
    told = read_refusal(bytes(response.body or b""), response.status_code)
    return LinkEnding(code, told.code, told.message)


def read_refusal(body: bytes, status: int, phrase: str = "") -> Refusal:
    """Return the refusal in the body of an answer; of a foreign body, the status alone."""
    try:
        error = parse_object(body)["error"]
    except (BadMessageError, KeyError):
        error = None
    told = error if isinstance(error, dict) else {}
    field, retry_after_s = told.get("field"), told.get("retry_after_s")
    return Refusal(
        str(told.get("code", f"http_{status}")),
        str(told.get("message", phrase)),
        field if isinstance(field, str) else None,
        retry_after_s=float(retry_after_s) if isinstance(retry_after_s, int | float) else None,
    )
