"""The two tasks of an attachment take turns with all others on the event loop."""

import asyncio
from typing import cast

from reverie.rtc.metrics import Metrics
from reverie.rtc.options import ServerOptions
from reverie.rtc.websocket.conversation import MESSAGES_A_TURN, SocketConversation
from reverie.rtc.websocket.socket_peer import SocketPeer
from reverie.rtc.websocket.socket_reading import SocketReading
from reverie.rtc.wire.errors import PeerLeftError
from reverie.sessions import Attachment
from reverie.sessions.attachments.round_trip import RoundTrip
from reverie.sessions.protocol.commands import AnyCommand
from reverie.sessions.protocol.errors import AttachmentEndedError
from reverie.sessions.protocol.events import AnyEvent, RequestAccepted

COUNT = 40 * MESSAGES_A_TURN


class EagerPeer:
    """Has every message at once, then leaves; takes everything at once."""

    def __init__(self, messages: int) -> None:
        self.left = messages
        self.sent = 0
        self.closed: tuple[int, str] | None = None

    async def receive(self) -> str:
        if not self.left:
            raise PeerLeftError(1005)
        self.left -= 1
        return f'{{"type":"pause","id":"c{self.left}"}}'

    async def send(self, message: str | bytes) -> None:
        self.sent += 1

    def read(self) -> SocketReading:
        return SocketReading(0)

    async def close(self, code: int, reason: str) -> None:
        self.closed = (code, reason)


class EagerAttachment:
    """Has every event at once, then ends, or waits when it has none at all."""

    def __init__(self, events: int) -> None:
        self.left = events
        self.waits = not events
        self.submitted: list[AnyCommand] = []
        self.detached = 0
        self.round_trip = RoundTrip()

    async def has_room(self) -> None:
        return

    def submit(self, command: AnyCommand, *, quiet: bool = False) -> None:
        self.submitted.append(command)

    async def take(self) -> AnyEvent:
        if self.waits:
            await asyncio.Event().wait()
        if not self.left:
            raise AttachmentEndedError("closed")
        self.left -= 1
        return RequestAccepted(command="c")

    def limit_video(self, bits_per_s: int | None) -> None:
        return

    def hold_video(self, held: bool) -> None:
        return

    def detach(self) -> None:
        self.detached += 1


async def turns_of_others(peer: EagerPeer, attachment: EagerAttachment) -> int:
    """Carry on a conversation; return how often another task had its turn."""
    conversation = SocketConversation(
        cast(SocketPeer, peer), cast(Attachment, attachment), ServerOptions(), Metrics()
    )
    turns = 0

    async def another() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async with asyncio.TaskGroup() as tasks:
        other = tasks.create_task(another())
        await conversation.run()
        other.cancel()
    assert attachment.detached == 1
    return turns


async def test_a_flood_of_commands_leaves_turns_for_others() -> None:
    peer, attachment = EagerPeer(COUNT), EagerAttachment(0)
    assert await turns_of_others(peer, attachment) >= COUNT / MESSAGES_A_TURN
    assert len(attachment.submitted) == COUNT


async def test_a_flood_of_events_leaves_turns_for_others() -> None:
    peer, attachment = EagerPeer(1), EagerAttachment(COUNT)
    peer.receive = asyncio.Event().wait  # type: ignore[assignment,method-assign]
    assert await turns_of_others(peer, attachment) >= COUNT / MESSAGES_A_TURN
    assert (peer.sent, peer.closed) == (COUNT, (1000, "closed"))
