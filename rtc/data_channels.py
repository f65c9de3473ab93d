"""The data channels of a peer: `events` carries what a WebSocket's text frames do.

The callbacks of a channel run inside aiortc, where waiting would hold up the peer's media: they
only note what came. What waits is bounded; a peer that sends more than is read is ended.
"""

import asyncio
import json
from collections.abc import Callable

from aiortc import RTCDataChannel

from reverie.rtc.errors import PeerLeftError

EVENTS = "events"
ACTIONS = "actions"

SEND_AHEAD_BYTES = 2**16
"""What may wait inside this process for the peer to take it."""

_MAX_PING_CHARS = 64


class EventsChannel:
    """The reliable channel."""

    def __init__(self, channel: RTCDataChannel, capacity: int, now_s: Callable[[], float]) -> None:
        """Listen from now on; at most `capacity` messages wait."""
        self.heard_s = now_s()  # when the peer last said anything
        self.overflowed = False
        self._channel = channel
        self._now_s = now_s
        self._inbox: asyncio.Queue[str | bytes] = asyncio.Queue(capacity)
        self._low = asyncio.Event()
        self._closed = False
        channel.bufferedAmountLowThreshold = SEND_AHEAD_BYTES // 2
        channel.on("message", self._on_message)
        channel.on("bufferedamountlow", self._low.set)
        channel.on("close", self._on_close)

    @property
    def closed(self) -> bool:
        """Whether nothing more can be said."""
        return self._closed

    async def receive(self) -> str | bytes:
        """Wait for the next message that is no ping. Safe to cancel."""
        return await self._inbox.get()

    async def send(self, message: str) -> None:
        """Send a message, once little enough waits. Safe to cancel: then it is not sent.

        Raises:
            PeerLeftError: the channel is closed.
        """
        while not self._closed and self._channel.bufferedAmount > SEND_AHEAD_BYTES:
            self._low.clear()
            await self._low.wait()
        self._say(message)

    def _say(self, message: str) -> None:
        if self._closed or self._channel.readyState != "open":
            raise PeerLeftError(1006)
        self._channel.send(message)

    def _on_message(self, message: str | bytes) -> None:
        self.heard_s = self._now_s()
        number = _ping_number(message)
        if number is not None:
            if self._channel.readyState == "open" and not self.overflowed:
                self._channel.send(json.dumps({"type": "pong", "n": number}))
            return
        try:
            self._inbox.put_nowait(message)
        except asyncio.QueueFull:
            self.overflowed = True

    def _on_close(self) -> None:
        self._closed = True
        self._low.set()


def _ping_number(message: str | bytes) -> int | None:
    """Return the number of a ping; None for any other message."""
    if not isinstance(message, str) or len(message) > _MAX_PING_CHARS or '"ping"' not in message:
        return None
    try:
        value = json.loads(message)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or value.keys() != {"type", "n"} or value["type"] != "ping":
        return None
    number = value["n"]
    return number if type(number) is int and 0 <= number < 2**53 else None
