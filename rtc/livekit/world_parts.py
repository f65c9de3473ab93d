"""What a world has beside its session, whichever room it is in."""

from dataclasses import dataclass, field

from reverie.rtc.livekit.captions import Captions
from reverie.rtc.livekit.helm import Helm
from reverie.rtc.livekit.lifetime import Lifetime
from reverie.rtc.livekit.news import News
from reverie.rtc.livekit.options import BridgeOptions
from reverie.rtc.livekit.receipts import Receipts
from reverie.rtc.livekit.status import StatusBoard
from reverie.rtc.livekit.steering import Steering
from reverie.sessions import Session
from reverie.sessions.events import MediaInit


@dataclass(slots=True)
class WorldParts:
    """The parts that outlive a room.

    Attributes:
        inits: the newest `media.init` of each stream.
        chunk: the newest that was shown; -1 before the first.
    """

    session: Session
    options: BridgeOptions
    helm: Helm
    steering: Steering
    lifetime: Lifetime
    board: StatusBoard
    news: News
    captions: Captions
    receipts: Receipts = field(default_factory=Receipts)
    inits: dict[str, MediaInit] = field(default_factory=dict)
    chunk: int = -1
