"""Pushed H.264 access units, to frames in display order."""

from collections.abc import Iterator
from typing import cast

from av import CodecContext, Packet, VideoFrame
from av.error import FFmpegError
from av.video.codeccontext import VideoCodecContext
from av.video.stream import VideoStream

from reverie.media.errors import BadInputError
from reverie.media.video.pictures import IntakeLimits


class AccessUnits:
    """One sender's stream. Begins, and begins again after an error, with a key frame."""

    def __init__(self, limits: IntakeLimits) -> None:
        self._limits = limits
        self._decoder: VideoCodecContext | None = None

    def take(self, data: bytes, pts_us: int, *, last: bool) -> list[tuple[int, VideoFrame]]:
        """Return the frames that are complete with this unit, each with its time.

        Raises:
            BadInputError: it cannot be decoded; continue with a key frame.
        """
        decoder = self._decoder = self._decoder or self._opened()
        packet = cast("Packet[VideoStream]", Packet(data))
        packet.pts = pts_us
        try:
            frames = list(_decoded(decoder, packet))
        except (FFmpegError, ValueError) as error:
            self._decoder = None
            raise BadInputError(f"the H.264 access unit cannot be decoded: {error}") from None
        whole = [(pts_us if frame.pts is None else frame.pts, frame) for frame in frames]
        return [*whole, *self.finish()] if last else whole

    def finish(self) -> list[tuple[int, VideoFrame]]:
        """End the stream; return the frames that the decoder held back."""
        decoder, self._decoder = self._decoder, None
        try:
            frames = list(_decoded(decoder, None)) if decoder else []
        except (FFmpegError, ValueError):
            return []  # nothing that can be decoded came so far
        return [(frame.pts or 0, frame) for frame in frames]

    def _opened(self) -> VideoCodecContext:
        decoder = CodecContext.create("h264", "r")
        assert isinstance(decoder, VideoCodecContext), "h264 is a video codec"
        decoder.thread_count = 1  # frame threads would hold frames back
        decoder.options = {"max_pixels": str(self._limits.pixels)}
        return decoder


def _decoded(
    decoder: VideoCodecContext, packet: "Packet[VideoStream] | None"
) -> Iterator[VideoFrame]:
    yield from decoder.decode(packet)
