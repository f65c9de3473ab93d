"""H.264 for WebCodecs: Annex B access units, headers in band on every key frame, no delay.

Constrained baseline by x264 with `ultrafast` and `zerolatency`: about 1 ms for 128x128 on one core.
Key frames are made on request only, so that a still picture costs almost nothing.
"""

from fractions import Fraction

import av
import numpy as np
from av.video.frame import PictureType
from av.video.reformatter import Colorspace

from reverie.media.errors import EncodeError
from reverie.media.types import Container, EncodedFrame, Picture, Size, StreamFormat
from reverie.media.video.sps import codec_string

BUFFER_PARTS = 5
"""A frame takes at most this part of a second of the limit, for the one after it waits so long."""

_BT709 = 1
"""Code point of primaries, transfer and matrix (ITU-T H.273)."""
_LIMITED = 1
"""libav's code for luma in 16..235."""


class H264Encoder:
    """A `VideoEncoder` on libx264. Sizes are padded to even by repeating the last row or column."""

    def __init__(self, size: Size, rate_hz: float, quality: int = 18) -> None:
        """Open an encoder.

        Args:
            rate_hz: for rate control only; times are those of the frames.
            quality: x264's constant rate factor, 0 (best) to 51.

        Raises:
            EncodeError: libx264 refuses the size.
        """
        self._size = size
        self._rate_hz = rate_hz
        self._quality = quality
        self._format: StreamFormat | None = None
        self._context: av.VideoCodecContext | None = _open(size, rate_hz, quality, None)

    def encode(self, frame_HWC: Picture, pts_us: int, force_key: bool) -> EncodedFrame:
        """Encode one frame."""
        if self._context is None:
            raise EncodeError("the encoder is closed")
        picture = av.VideoFrame.from_ndarray(_even(frame_HWC), format="rgb24").reformat(
            format="yuv420p", dst_colorspace=Colorspace.ITU709
        )
        picture.pts = pts_us
        picture.pict_type = PictureType.I if force_key else PictureType.NONE
        try:
            packets = self._context.encode(picture)
        except av.FFmpegError as error:
            raise EncodeError(f"libx264 failed: {error}") from error
        if len(packets) != 1:
            raise EncodeError(f"libx264 returned {len(packets)} access units for one frame")
        data, key = bytes(packets[0]), packets[0].is_keyframe
        if key or self._format is None:
            self._format = StreamFormat(
                codec_string(data), Container.ANNEXB, self._size.width, self._size.height
            )
        return EncodedFrame(data, pts_us, key, self._format)

    def limit(self, bits_per_s: int | None) -> None:
        """Limit the bitrate from now on; starts again with a key frame."""
        if self._context is not None:
            self._context = _open(self._size, self._rate_hz, self._quality, bits_per_s)

    def close(self) -> None:
        """Free the encoder."""
        self._context = None


def _open(size: Size, rate_hz: float, quality: int, bits_per_s: int | None) -> av.VideoCodecContext:
    context = av.CodecContext.create("libx264", "w")
    context.width = size.width + size.width % 2
    context.height = size.height + size.height % 2
    context.pix_fmt = "yuv420p"
    context.time_base = Fraction(1, 1_000_000)
    context.framerate = Fraction(rate_hz).limit_denominator(1001)
    context.thread_count = 1
    context.gop_size = 1_000_000
    context.color_primaries = context.color_trc = context.colorspace = _BT709
    context.color_range = _LIMITED
    context.options = {
        "preset": "ultrafast",
        "tune": "zerolatency",
        "profile": "baseline",
        "crf": str(quality),
    }
    if _fits_level_31(context.width, context.height, rate_hz):
        context.options["level"] = "3.1"  # as in WebRTC offers, so that all streams say the same
    if bits_per_s is not None:
        context.options |= {"maxrate": str(bits_per_s), "bufsize": str(bits_per_s // BUFFER_PARTS)}
    try:
        context.open()
    except av.FFmpegError as error:
        raise EncodeError(f"libx264 refuses {size.width}x{size.height}: {error}") from error
    return context


def _fits_level_31(width: int, height: int, rate_hz: float) -> bool:
    """Tell whether a picture is within level 3.1 (ITU-T H.264, table A-1; sides: A.3.1)."""
    across, down = -(-width // 16), -(-height // 16)
    blocks = across * down
    return blocks <= 3600 and blocks * rate_hz <= 108_000 and max(across, down) ** 2 <= 8 * 3600


def _even(frame_HWC: Picture) -> Picture:
    height, width, _ = frame_HWC.shape
    if height % 2 or width % 2:
        return np.pad(frame_HWC, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
    return np.ascontiguousarray(frame_HWC)
