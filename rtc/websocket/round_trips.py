"""The round trips of one WebSocket: pings with a payload of their own, and the pongs to them.

A browser answers pings by itself, however busy its page is.
"""

import secrets
from collections import OrderedDict
from collections.abc import Callable

EVERY_S = 0.15
"""Between two pings, while something is sent."""

UNANSWERED = 64
"""Pings that are remembered; a pong to an older one tells nothing."""

PAYLOAD_BYTES = 8
"""Uvicorn's own pings have 4."""

ROUND_TRIPS = "reverie.round_trips"
"""The ASGI extension whose `measured` are those of the socket."""


class RoundTrips:
    """Which pings are due, and how long each took.

    Attributes:
        heard: called with each round trip, in microseconds.
    """

    def __init__(self) -> None:
        self.heard: Callable[[int], None] = _ignored
        self._sent: OrderedDict[bytes, float] = OrderedDict()
        self._due_s = 0.0

    def due(self, now_s: float) -> bytes | None:
        """Return the payload of a ping to send now; None when none is due."""
        if now_s < self._due_s or self.heard is _ignored:
            return None
        self._due_s = now_s + EVERY_S
        payload = secrets.token_bytes(PAYLOAD_BYTES)
        self._sent[payload] = now_s
        while len(self._sent) > UNANSWERED:
            self._sent.popitem(last=False)
        return payload

    def answered(self, payload: bytes, now_s: float) -> bool:
        """Note a pong; return whether it answers one of these pings."""
        sent_s = self._sent.pop(payload, None)
        if sent_s is None:
            return False
        self.heard(round((now_s - sent_s) * 1e6))
        return True


def _ignored(_: int) -> None:
    pass
