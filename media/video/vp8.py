"""VP8 by libvpx, for WebRTC: without delay, with key frames on request only.

Constant quality below a limit on bits: a still picture costs almost nothing, and noise cannot
flood the connection. Odd sizes are coded as they are. Colours are BT.601, the only ones that VP8
can signal (RFC 6386, section 9.2).
"""

from fractions import Fraction

import av
from av.video.frame import PictureType
from av.video.reformatter import Colorspace

from reverie.media.errors import EncodeError
from reverie.media.types import Container, EncodedFrame, Picture, Size, StreamFormat

BUFFER_PARTS = 5
"""A frame takes at most this part of a second of the limit, for the one after it waits so long."""

MOST_BITS_PER_S = 20_000_000
"""Without a limit: more than any picture here needs."""


class Vp8Encoder:
    """A `VideoEncoder` on libvpx that can be limited."""

    def __init__(self, size: Size, rate_hz: float, quality: int = 10) -> None:
        """Open an encoder.

        Args:
            rate_hz: for rate control only; times are those of the frames.
            quality: libvpx's constant quality level, 4 (best) to 63.

        Raises:
            EncodeError: libvpx refuses the size.
        """
        self._size = size
        self._rate_hz = rate_hz
        self._quality = quality
        self._format = StreamFormat("vp8", Container.VP8, size.width, size.height)
        self._context: av.VideoCodecContext | None = self._open(None)

    def encode(self, frame_HWC: Picture, pts_us: int, force_key: bool) -> EncodedFrame:
        """Encode one frame."""
        if self._context is None:
            raise EncodeError("the encoder is closed")
        picture = av.VideoFrame.from_ndarray(frame_HWC, format="rgb24").reformat(
            format="yuv420p", dst_colorspace=Colorspace.ITU601
        )
        picture.pts = pts_us
        picture.pict_type = PictureType.I if force_key else PictureType.NONE
        try:
            packets = self._context.encode(picture)
        except av.FFmpegError as error:
            raise EncodeError(f"libvpx failed: {error}") from error
        if len(packets) != 1:
            raise EncodeError(f"libvpx returned {len(packets)} pictures for one frame")
        return EncodedFrame(bytes(packets[0]), pts_us, packets[0].is_keyframe, self._format)

    def limit(self, bits_per_s: int | None) -> None:
        """Limit the bitrate from now on; None: as many bits as the quality needs.

        libvpx takes no new limit while it runs, so this starts again with a key frame.
        """
        if self._context is not None:
            self._context = self._open(bits_per_s)

    def close(self) -> None:
        """Free the encoder."""
        self._context = None

    def _open(self, bits_per_s: int | None) -> av.VideoCodecContext:
        most = bits_per_s or MOST_BITS_PER_S
        context = av.CodecContext.create("libvpx", "w")
        context.width, context.height = self._size.width, self._size.height
        context.pix_fmt = "yuv420p"
        context.time_base = Fraction(1, 1_000_000)
        context.framerate = Fraction(self._rate_hz).limit_denominator(1001)
        context.thread_count = 1
        context.gop_size = 1_000_000
        context.bit_rate = most
        context.qmin, context.qmax = 2, 56
        context.options = {
            "deadline": "realtime",
            "cpu-used": "-6",
            "lag-in-frames": "0",
            "auto-alt-ref": "0",
            "crf": str(self._quality),
            "maxrate": str(most),
            "bufsize": str(most // BUFFER_PARTS),
            "undershoot-pct": "100",
            "overshoot-pct": "15",
            "static-thresh": "1",
        }
        try:
            context.open()
        except av.FFmpegError as error:
            text = f"libvpx refuses {self._size.width}x{self._size.height}: {error}"
            raise EncodeError(text) from error
        return context
