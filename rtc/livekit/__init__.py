"""A session in a LiveKit room: its pictures and sound out, what people say and press in.

`bridge.py` is the way in: it serves one session to one room, and works on `Session` alone, so that
one on a server and one in this process are served alike. `presence.py` goes into a room by itself
and comes back after a loss. Everything the room is told and may say is named in `vocabulary.py`.
This package needs `livekit` (extra `livekit`); nothing else of the house imports it.
"""

from reverie.rtc.livekit.errors import (
    LiveKitError,
    NotJoinedError,
    NotPublishedError,
    RoomEnding,
    SteeringError,
)
from reverie.rtc.livekit.options import BridgeOptions
from reverie.rtc.livekit.room_bridge import RoomBridge
from reverie.rtc.livekit.room_connection import RoomConnection, RoomConnectionOptions

__all__ = [
    "BridgeOptions",
    "LiveKitError",
    "NotJoinedError",
    "NotPublishedError",
    "RoomBridge",
    "RoomConnection",
    "RoomConnectionOptions",
    "RoomEnding",
    "SteeringError",
]
