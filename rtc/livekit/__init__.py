"""A session in a LiveKit room: media go to the room, prompts and actions come from it.

`room_bridge.py` is the entry point: it serves one session to one room, and depends on `Session`
alone, so that a session on a server and one in this process are served alike. `room_connection.py`
joins a room by itself and rejoins after a loss. `vocabulary.py` names all topics, RPC methods and
attributes. This package needs `livekit` (extra `livekit`); no other package imports it.
"""

from reverie.rtc.livekit.errors import (
    InputRefusedError,
    LiveKitError,
    NotJoinedError,
    NotPublishedError,
    RoomEnding,
)
from reverie.rtc.livekit.options import BridgeOptions
from reverie.rtc.livekit.room_bridge import RoomBridge
from reverie.rtc.livekit.room_connection import RoomConnection, RoomConnectionOptions

__all__ = [
    "BridgeOptions",
    "InputRefusedError",
    "LiveKitError",
    "NotJoinedError",
    "NotPublishedError",
    "RoomBridge",
    "RoomConnection",
    "RoomConnectionOptions",
    "RoomEnding",
]
