"""The data channels of a peer: `events` carries what the text frames of a WebSocket do.

The callbacks of a channel run inside aiortc, where waiting would delay the peer's media, so they
only queue messages. The queue is bounded; a peer that overflows it is closed.
"""

import asyncio
import json
from collections.abc import Callable

from aiortc import RTCDataChannel

from reverie.rtc.wire.errors import PeerLeftError

EVENTS = "events"
ACTIONS = "actions"

SEND_AHEAD_BYTES = 2**16
"""Bytes that may wait in this process to be sent."""

BEHIND_BYTES = 2**12
"""While more waits to be sent, what describes pictures is left out: they must not wait for it."""

INBOX_BYTES = 8 * 2**20
"""Bytes of all messages that may wait to be read."""

_MAX_PING_CHARS = 64


class PeerChannels:
    """Both channels of a peer, once it opens them; other channels and duplicates are ignored."""

    def __init__(
        self, capacity: int, now_s: Callable[[], float], changed: Callable[[], None]
    ) -> None:
        """Accept the channels when the peer opens them.

        Args:
            capacity: messages on `events` that may wait.
            changed: called when `events` has opened.
        """
        self.events: EventsChannel | None = None
        self._capacity = capacity
        self._now_s = now_s
        self._changed = changed
        self._actions: RTCDataChannel | None = None
        self._on_action: Callable[[str | bytes], None] | None = None

    def opened(self, channel: RTCDataChannel) -> None:
        """Accept a channel that the peer has opened."""
        if channel.label == EVENTS and self.events is None:
            self.events = EventsChannel(channel, self._capacity, self._now_s)
            self._changed()
        elif channel.label == ACTIONS and self._actions is None:
            self._actions = channel
            channel.on("message", self._on_message)

    def on_action(self, call: Callable[[str | bytes], None]) -> None:
        """Call `call` with each message on `actions` from now on."""
        self._on_action = call

    def _on_message(self, message: str | bytes) -> None:
        if self._on_action is not None:
            self._on_action(message)


class EventsChannel:
    """The reliable channel."""

    def __init__(self, channel: RTCDataChannel, capacity: int, now_s: Callable[[], float]) -> None:
        """Queue messages from now on, at most `capacity` of them."""
        self.heard_s = now_s()  # when the last message arrived
        self.overflowed = False
        self._channel = channel
        self._now_s = now_s
        self._inbox: asyncio.Queue[str | bytes] = asyncio.Queue(capacity)
        self._waiting_bytes = 0
        self._low = asyncio.Event()
        self._closed = False
        channel.bufferedAmountLowThreshold = SEND_AHEAD_BYTES // 2
        channel.on("message", self._on_message)
        channel.on("bufferedamountlow", self._low.set)
        channel.on("close", self._on_close)

    @property
    def closed(self) -> bool:
        """Whether nothing more can be sent."""
        return self._closed

    @property
    def behind(self) -> bool:
        """Whether the line does not take what is sent."""
        return self._channel.bufferedAmount > BEHIND_BYTES

    async def receive(self) -> str | bytes:
        """Wait for the next message that is no ping. Safe to cancel."""
        message = await self._inbox.get()
        self._waiting_bytes -= len(message)
        return message

    async def send(self, message: str) -> None:
        """Send a message once the send buffer is low. Safe to cancel: then nothing is sent.

        Raises:
            PeerLeftError: the channel is closed.
        """
        while not self._closed and self._channel.bufferedAmount > SEND_AHEAD_BYTES:
            self._low.clear()
            await self._low.wait()
        self._send_now(message)

    def _send_now(self, message: str) -> None:
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
        if self._inbox.full() or self._waiting_bytes + len(message) > INBOX_BYTES:
            self.overflowed = True
            return
        self._waiting_bytes += len(message)
        self._inbox.put_nowait(message)

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
