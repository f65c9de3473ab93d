"""What a session says of its streams: pictures, sound, text, and speech in what a client pushes.

`media.init` comes before the first chunk of a stream and again after any change of codec or size;
`media.complete` comes exactly once, after the last chunk.
"""

from typing import Literal

from pydantic import Field

from reverie.sessions.protocol.event_base import Event


class MediaInit(Event):
    """How to decode what follows on a stream."""

    type: Literal["media.init"] = "media.init"
    stream: str
    kind: Literal["video", "audio"]
    codec: str = Field(
        description="As for WebCodecs: avc1.42001f, vp8, opus; or jpeg, rgb24, pcm16."
    )
    container: Literal["annexb", "vp8", "jpeg", "raw", "opus", "rtp"]
    width: int = Field(default=0, description="Pixels; 0 for sound.")
    height: int = 0
    rate_hz: float = Field(description="Frames or samples a second.")
    channels: int = Field(default=0, description="Of sound.")
    timebase_hz: int = Field(default=1_000_000, description="Units of all times of the stream.")
    seed: int


class MediaChunk(Event):
    """One access unit, picture or packet of sound; its bytes come with it.

    `index` counts what this attachment was sent of the stream, +1 always.
    """

    type: Literal["media.chunk"] = "media.chunk"
    stream: str
    index: int = Field(ge=0)
    pts_us: int
    duration_us: int
    key: bool
    chunk: int = Field(description="The loop's chunk that the frame belongs to.")
    frame: int = Field(ge=0, description="Number of the frame in its chunk.")
    last: bool = Field(description="Whether it is the last frame of its chunk.")
    step: int
    discontinuity: bool = False
    dropped: int = Field(
        default=0, ge=0, description="Frames, or packets, skipped before this one."
    )
    size_bytes: int = Field(ge=0)
    rtp_timestamp: int | None = Field(
        default=None, ge=0, lt=2**32, description="On WebRTC: of the frame that carries the bytes."
    )
    data: bytes = Field(default=b"", exclude=True, repr=False)


class MediaComplete(Event):
    """A stream has ended; nothing of it comes after this."""

    type: Literal["media.complete"] = "media.complete"
    stream: str
    reason: str
    chunks: int
    size_bytes: int


class TextDelta(Event):
    """More text of an utterance: whole words, each with the space behind it.

    After `session.attached` the first one holds all of the newest utterance so far.
    """

    type: Literal["text.delta"] = "text.delta"
    stream: str
    text: str
    utterance: int = Field(ge=0, description="Its number; a higher one ends those before.")
    pts_us: int = Field(description="Media time of the session when it was said.")
    final: bool = Field(default=False, description="Whether the utterance ends with it.")
    cut: bool = Field(
        default=False, description="Whether the utterance was broken off: no more will come."
    )
    answers: str | None = Field(default=None, description="The push_text that it answers.")


class TurnStarted(Event):
    """Speech begins in the sound that a client pushes into a stream."""

    type: Literal["turn.started"] = "turn.started"
    stream: str
    pts_us: int = Field(description="Where in the stream, on the clock of the client that pushes.")
    interrupts: bool = Field(default=False, description="Whether it makes the model stop speaking.")


class TurnEnded(Event):
    """Speech has ended in the sound that a client pushes."""

    type: Literal["turn.ended"] = "turn.ended"
    stream: str
    pts_us: int
    duration_us: int = Field(ge=0)
