"""The client's side of a WebSocket: receive, send, close."""

from collections.abc import Callable

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from reverie.rtc.websocket.connection import BACKLOG
from reverie.rtc.websocket.round_trips import ROUND_TRIPS
from reverie.rtc.websocket.socket_reading import SocketReading
from reverie.rtc.wire.errors import PeerLeftError

MAX_REASON_BYTES = 123
"""RFC 6455 section 5.5: what a close frame holds next to the code."""


class SocketPeer:
    """One WebSocket.

    `connection.py` limits the time of sending, receiving and closing.
    """

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    def on_round_trip(self, heard: Callable[[int], None]) -> None:
        """Have `heard` called with each round trip that is measured, in microseconds."""
        extension = self._socket.scope.get("extensions", {}).get(ROUND_TRIPS)
        if extension is not None:
            extension["measured"].heard = heard

    async def accept(self) -> None:
        """Accept the socket.

        Raises:
            PeerLeftError: it is closed already.
        """
        try:
            await self._socket.accept()
        except WebSocketDisconnect as error:
            raise PeerLeftError(error.code) from None

    async def receive(self) -> str | bytes:
        """Wait for a message. Safe to cancel: the message then stays for the next call.

        Raises:
            PeerLeftError: the socket is closed or lost.
        """
        message = await self._socket.receive()
        if message["type"] == "websocket.disconnect":
            raise PeerLeftError(message.get("code") or 1006)
        text: str | None = message.get("text")
        return text if text is not None else bytes(message["bytes"])

    async def send(self, message: str | bytes) -> None:
        """Send a message; wait while the client reads nothing.

        Raises:
            PeerLeftError: the socket is closed or lost.
        """
        try:
            if isinstance(message, str):
                await self._socket.send_text(message)
            else:
                await self._socket.send_bytes(message)
        except WebSocketDisconnect as error:
            raise PeerLeftError(error.code) from None

    def read(self) -> SocketReading:
        """Return what waits to be sent."""
        extension = self._socket.scope.get("extensions", {}).get(BACKLOG)
        return extension["read"]() if extension is not None else SocketReading(0)

    async def close(self, code: int, reason: str) -> None:
        """Close the socket, unless it is closed already."""
        if self._socket.application_state is not WebSocketState.CONNECTED:
            return
        short = reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore")
        try:
            await self._socket.close(code, short)
        except (WebSocketDisconnect, OSError):
            return  # it was closed meanwhile
