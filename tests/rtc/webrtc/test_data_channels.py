"""What comes on a channel is kept, within bounds; pings are answered at once."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from reverie.rtc.webrtc.data_channels import INBOX_BYTES, EventsChannel, PeerChannels
from reverie.rtc.wire.errors import PeerLeftError


class Wire:
    """The side of a channel that aiortc shows; nothing is behind it."""

    def __init__(self, label: str = "events") -> None:
        self.label = label
        self.readyState = "open"
        self.bufferedAmount = 0
        self.bufferedAmountLowThreshold = 0
        self.sent: list[str] = []
        self._calls: dict[str, Callable[..., Any]] = {}

    def on(self, event: str, call: Callable[..., Any]) -> None:
        self._calls[event] = call

    def send(self, message: str) -> None:
        self.sent.append(message)

    def emit(self, event: str, *arguments: object) -> None:
        self._calls[event](*arguments)


def channel(capacity: int = 4) -> tuple[EventsChannel, Wire, list[float]]:
    wire, now = Wire(), [0.0]
    return EventsChannel(wire, capacity, lambda: now[0]), wire, now  # type: ignore[arg-type]


async def test_a_ping_is_answered_and_is_no_message() -> None:
    events, wire, now = channel()
    now[0] = 7.0
    wire.emit("message", '{"type": "ping", "n": 3}')
    assert json.loads(wire.sent[0]) == {"type": "pong", "n": 3}
    assert events.heard_s == 7.0
    wire.emit("message", "after")
    assert await events.receive() == "after"


@pytest.mark.parametrize(
    "message",
    ['{"type": "ping"}', '{"type": "ping", "n": -1}', '{"type": "ping", "n": true}',
     '{"type": "ping", "n": 1, "x": 2}', '{"type": "ping", "n": 1.5}', '["ping"]', '"ping"',
     b"ping"],
)  # fmt: skip
async def test_what_only_looks_like_a_ping_is_a_message(message: str | bytes) -> None:
    events, wire, _ = channel()
    wire.emit("message", message)
    assert wire.sent == []
    assert await events.receive() == message


async def test_more_messages_than_may_wait_are_noticed() -> None:
    events, wire, _ = channel(capacity=2)
    for number in range(3):
        wire.emit("message", str(number))
    assert events.overflowed
    assert [await events.receive() for _ in range(2)] == ["0", "1"]


async def test_more_bytes_than_may_wait_are_noticed() -> None:
    events, wire, _ = channel(capacity=100)
    piece = b"x" * (INBOX_BYTES // 4)
    for _ in range(4):
        wire.emit("message", piece)
    assert not events.overflowed
    await events.receive()
    wire.emit("message", piece)
    assert not events.overflowed
    wire.emit("message", b"y")
    assert events.overflowed


async def test_a_closed_channel_says_nothing_more() -> None:
    events, wire, _ = channel()
    await events.send("one")
    wire.emit("close")
    assert events.closed
    with pytest.raises(PeerLeftError):
        await events.send("two")
    assert wire.sent == ["one"]


def test_of_a_peers_channels_the_first_of_each_label_counts() -> None:
    opened: list[None] = []
    channels = PeerChannels(4, lambda: 0.0, lambda: opened.append(None))
    heard: list[object] = []
    actions, second = Wire("actions"), Wire("actions")
    for wire in (Wire("chat"), actions, second, Wire("events"), Wire("events")):
        channels.opened(wire)  # type: ignore[arg-type]
    actions.emit("message", "too early")
    channels.on_action(heard.append)
    actions.emit("message", "now")
    assert heard == ["now"]
    assert len(opened) == 1
    assert "message" not in second._calls
