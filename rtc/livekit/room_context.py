"""The shared context of a bridge, which outlives each room."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field

from reverie.rtc.livekit.captions import Captions
from reverie.rtc.livekit.command_gateway import CommandGateway
from reverie.rtc.livekit.event_publisher import EventPublisher
from reverie.rtc.livekit.input_queue import RoomInputQueue
from reverie.rtc.livekit.options import BridgeOptions
from reverie.rtc.livekit.rest_rules import RestRules
from reverie.rtc.livekit.status import StatusBoard
from reverie.sessions import Session
from reverie.sessions.protocol.events import ControlApplied, ControlSuperseded
from reverie.sessions.protocol.media_events import MediaInit

REMEMBERED = 256

Receipt = ControlApplied | ControlSuperseded


class ReceiptWaiters:
    """The newest receipts. Any task may wait for one."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Receipt] = OrderedDict()
        self._arrived = asyncio.Event()

    def note(self, receipt: Receipt) -> None:
        """Keep a receipt; the oldest gives way."""
        self._known[receipt.control] = receipt
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        before, self._arrived = self._arrived, asyncio.Event()
        before.set()

    async def of(self, control: str, limit_s: float) -> Receipt | None:
        """Return the receipt of a control; None when it does not come in time."""
        try:
            async with asyncio.timeout(limit_s):
                while control not in self._known:
                    await self._arrived.wait()
        except TimeoutError:
            return None
        return self._known[control]


@dataclass(slots=True)
class RoomContext:
    """The parts that outlive a room.

    Attributes:
        inits: the newest `media.init` of each stream.
        chunk: the newest chunk that was shown; -1 before the first.
    """

    session: Session
    options: BridgeOptions
    gateway: CommandGateway
    input_queue: RoomInputQueue
    rest_rules: RestRules
    board: StatusBoard
    publisher: EventPublisher
    captions: Captions
    receipts: ReceiptWaiters = field(default_factory=ReceiptWaiters)
    inits: dict[str, MediaInit] = field(default_factory=dict)
    chunk: int = -1
