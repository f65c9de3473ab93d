"""A client that asks faster than its answers leave: it is slowed, and answered all the same."""

import asyncio
from typing import cast

from session_rig import session_rig
from waiting import until

from reverie.rtc.metrics import Metrics
from reverie.rtc.options import ServerOptions
from reverie.rtc.websocket.conversation import SocketConversation
from reverie.rtc.websocket.socket_peer import SocketPeer
from reverie.rtc.websocket.socket_reading import SocketReading
from reverie.rtc.wire.errors import PeerLeftError
from reverie.rtc.wire.framing import decode_event
from reverie.sessions import SessionLimits
from reverie.sessions.protocol.events import AnyEvent, Error, RequestAccepted

COUNT = 4000


class HastyPeer:
    """Says everything at once, and takes nothing before its gate is open."""

    def __init__(self) -> None:
        self.said = 0
        self.heard: list[AnyEvent] = []
        self.gate = asyncio.Event()
        self.leaves = asyncio.Event()

    async def receive(self) -> str:
        if self.said == COUNT:
            await self.leaves.wait()
            raise PeerLeftError(1000)
        self.said += 1
        return f'{{"type":"resume","id":"n{self.said}"}}'

    async def send(self, message: str | bytes) -> None:
        await self.gate.wait()
        self.heard.append(decode_event(message))

    def read(self) -> SocketReading:
        return SocketReading(0)

    async def close(self, code: int, reason: str) -> None:
        return

    @property
    def answered(self) -> list[str | None]:
        return [each.command for each in self.heard if isinstance(each, RequestAccepted | Error)]


async def test_a_client_that_floods_is_not_read_while_answers_wait_and_gets_each_once() -> None:
    async with session_rig(SessionLimits(outbox_events=512)) as rig:
        _, _, person = await rig.driven()
        peer = HastyPeer()
        options = ServerOptions(commands_per_s=1, command_burst=100)
        talk = SocketConversation(cast(SocketPeer, peer), person.attachment, options, Metrics())
        talking = asyncio.create_task(talk.run())
        for _ in range(COUNT):
            await asyncio.sleep(0)
        assert 0 < peer.said < 512
        assert person.attachment.ended is None
        peer.gate.set()
        await until(lambda: len(peer.answered) == COUNT)
        assert sorted(map(str, peer.answered)) == sorted(f"n{n + 1}" for n in range(COUNT))
        peer.leaves.set()
        await talking
