"""The time of each frame of a clip, whether or not its file tells it.

A decoder returns frames in display order. Most files also hold their times; AVI has no field for
them, and an MP4 may lack the table (`ctts`, ISO/IEC 14496-12, 8.6.1.3). Then the times in the file
are those of decoding, and the n-th frame in display order gets the n-th smallest of them.
"""

import heapq
from collections.abc import Sequence
from fractions import Fraction

from av import Packet, VideoFrame
from av.video.stream import VideoStream

LOOKED_AT = 64
"""Packets at the beginning of an MP4 that show whether it has display times."""

_HELD_BACK = 17
"""A decoder holds back 16 frames at most: a packet that waited longer gave no picture."""

_MICROSECOND = Fraction(1, 1_000_000)


def tells_order(kind: str, stream: VideoStream, packets: Sequence["Packet[VideoStream]"]) -> bool:
    """Tell whether a file holds the display times of its frames.

    Args:
        kind: `mp4`, `matroska` or `avi`.
        stream: the video stream.
        packets: the first `LOOKED_AT` of them.
    """
    if not stream.codec_context.has_b_frames or kind == "matroska":
        return True
    if kind == "avi":
        return False
    return any(packet.pts != packet.dts for packet in packets)


class ClipTimes:
    """Assigns times to the frames of one clip: from 0 on, and never going back."""

    def __init__(self, stream: VideoStream, *, told: bool) -> None:
        """Begin at 0.

        Args:
            stream: the clip's video stream.
            told: whether the file holds display times.
        """
        self._told = told
        self._scale = stream.time_base or _MICROSECOND
        self._usual_s = float(1 / stream.average_rate) if stream.average_rate else 0.0
        self._decoding: list[int] = []  # times of packets whose frames are not out yet
        self._zero_s: float | None = None
        self._newest_s = 0.0

    def note(self, packet: "Packet[VideoStream]") -> None:
        """Note a packet that is about to be decoded."""
        if self._told or packet.dts is None:
            return
        heapq.heappush(self._decoding, packet.dts)
        if len(self._decoding) > _HELD_BACK:
            heapq.heappop(self._decoding)

    def stamp(self, frame: VideoFrame) -> float:
        """Write its time into the next frame, and return it in seconds."""
        said_s = self._said_s(frame)
        if self._zero_s is None:
            self._zero_s = said_s or 0.0
        elif said_s is None:
            self._newest_s += self._usual_s
        if said_s is not None:
            self._newest_s = max(self._newest_s, said_s - self._zero_s)
        frame.pts, frame.time_base = round(self._newest_s * 1e6), _MICROSECOND
        return self._newest_s

    def _said_s(self, frame: VideoFrame) -> float | None:
        if self._told:
            return frame.time
        return float(heapq.heappop(self._decoding) * self._scale) if self._decoding else None
