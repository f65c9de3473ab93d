"""What a world has beside its session, whichever room it is in."""

from dataclasses import dataclass, field

from reverie.rtc.livekit.captions import Captions
from reverie.rtc.livekit.command_gateway import CommandGateway
from reverie.rtc.livekit.event_publisher import EventPublisher
from reverie.rtc.livekit.input_queue import RoomInputQueue
from reverie.rtc.livekit.options import BridgeOptions
from reverie.rtc.livekit.receipts import ReceiptWaiters
from reverie.rtc.livekit.rest_rules import RestRules
from reverie.rtc.livekit.status import StatusBoard
from reverie.sessions import Session
from reverie.sessions.protocol.events import MediaInit


@dataclass(slots=True)
class RoomContext:
    """The parts that outlive a room.

    Attributes:
        inits: the newest `media.init` of each stream.
        chunk: the newest that was shown; -1 before the first.
    """

    session: Session
    options: BridgeOptions
    gateway: CommandGateway
    steering: RoomInputQueue
    lifetime: RestRules
    board: StatusBoard
    publisher: EventPublisher
    captions: Captions
    receipts: ReceiptWaiters = field(default_factory=ReceiptWaiters)
    inits: dict[str, MediaInit] = field(default_factory=dict)
    chunk: int = -1
