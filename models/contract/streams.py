"""The descriptions of a loop's output and input streams: pictures, sound and text."""

from dataclasses import dataclass
from enum import StrEnum

from reverie.models.contract.controls import Merge

SLOWEST_HZ = 8_000
FASTEST_HZ = 96_000
"""Rates of sound that a stream may have."""


class StreamKind(StrEnum):
    """What a stream carries."""

    VIDEO = "video"
    AUDIO = "audio"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """An output of a loop.

    Attributes:
        name: of the stream in events and commands.
        kind: what it carries.
        width: pixels; 0 for anything but video.
        height: pixels; 0 for anything but video.
        rate_hz: frames or samples a second of media time; 0 for text. Samples: 8000 to 96,000, a
            whole number.
        channels: of sound, 1 or 2; ignored for other streams.
    """

    name: str
    kind: StreamKind
    width: int = 0
    height: int = 0
    rate_hz: float = 0.0
    channels: int = 1


@dataclass(frozen=True, slots=True)
class InputSpec:
    """An input stream of a loop: media that a person pushes while it runs.

    Attributes:
        name: of the stream in commands, such as `camera`.
        kind: `VIDEO` (single pictures included) or `AUDIO`.
        merge: `LATEST` for a camera, where only the newest counts; `FIFO` for a clip, where every
            frame does.
        capacity: frames or pieces that may wait. Beyond it `LATEST` drops the oldest, `FIFO`
            refuses the new one. With 0 the loop receives nothing: only the session listens.
        width: pixels that pictures are scaled to; 0 for audio.
        height: likewise.
        rate_hz: samples a second that sound is resampled to; frames a second of a `FIFO` clip.
        channels: of sound: 1, or 2 for left and right; other sound is mixed.
        label: the text that a client shows.
    """

    name: str
    kind: StreamKind
    merge: Merge
    capacity: int
    width: int = 0
    height: int = 0
    rate_hz: float = 0.0
    channels: int = 1
    label: str = ""
