"""The names that a room and a world use: topics, RPC methods, attributes.

`docs/livekit.md` says what each carries. Other programs depend on them, so they change only
with a version of reverie.
"""

from typing import Final

TOPIC_PROMPT: Final = "world.prompt"
"""Text streams: prompts."""
TOPIC_CHAT: Final = "lk.chat"
"""Text streams of LiveKit's own chat; prompts, where no other handler reads them."""
TOPIC_INPUT: Final = "world.input"
"""Data packets: keys and axes."""
TOPIC_CAPTIONS: Final = "lk.transcription"
"""Text streams of LiveKit's own captions: text of the world."""
TOPIC_EVENTS: Final = "world.events"
"""Text streams to the room: events, one JSON object a line."""

RPC_INTERRUPT: Final = "world.interrupt"
RPC_ACTION: Final = "world.action"
RPC_PROMPT: Final = "world.prompt"
RPC_REWIND: Final = "world.rewind"
RPC_RESET: Final = "world.reset"
RPC_PAUSE: Final = "world.pause"
RPC_RESUME: Final = "world.resume"
RPC_UPDATE: Final = "world.update"
RPC_DRIVE: Final = "world.drive"
RPC_STATE: Final = "world.state"

TRACK_VIDEO: Final = "world_video"
TRACK_AUDIO: Final = "world_audio"
"""Begins the names of tracks of sound; the stream's own name follows a dot."""

ATTRIBUTE: Final = "world."
"""Begins the names of all attributes."""

PUBLISH_ON_BEHALF: Final = "lk.publish_on_behalf"
"""Attribute of a participant that publishes on behalf of another."""
