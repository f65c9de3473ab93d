"""How a session runs now: the lead, and the line to each client."""

from typing import Literal

from pydantic import Field

from reverie.sessions.protocol.event_base import Value
from reverie.sessions.protocol.session_view import LeadView


class AttachmentStats(Value):
    """One client that is attached. Times are null for a client in the server's own process."""

    role: Literal["driver", "viewer"]
    codec: str = Field(description="Of the pictures that it is sent.")
    round_trip_ms: float | None = Field(
        default=None, description="Of a small message; the middle one of the last second or so."
    )
    jitter_ms: float | None = Field(
        default=None, description="How far single ones are from that, on average."
    )
    waited_ms: float | None = Field(
        default=None, description="How long its newest frame had waited there; null: untold."
    )
    unseen_ms: float = Field(description="Media that was put out and that it has not reported.")
    bits_per_s: int | None = Field(
        default=None, description="What its line takes of each video; null: no limit is known."
    )
    lost: float | None = Field(
        default=None, description="Part of the packets lost lately, over WebRTC."
    )
    waiting: int = Field(description="Events and frames that wait to be sent.")
    skipped: int = Field(description="Frames and packets of sound that it was not sent.")


class SessionStats(Value):
    """How a session runs now."""

    lead: LeadView
    delay_ms: float | None = Field(
        default=None,
        description="What a playhead takes when nothing waits at the client; null: no line.",
    )
    chunk: int = Field(description="The newest chunk; -1 before the first.")
    newest_us: int = Field(description="Media time of the newest frame; -1 before the first.")
    attachments: tuple[AttachmentStats, ...] = ()
