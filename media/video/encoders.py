"""The encoder for each codec that a client may ask for."""

from collections.abc import Callable

from reverie.media.types import Codec, Size, VideoEncoder
from reverie.media.video.h264 import H264Encoder
from reverie.media.video.jpeg import JpegEncoder
from reverie.media.video.rgb24 import Rgb24Encoder
from reverie.media.video.vp8 import Vp8Encoder

OpenEncoder = Callable[[Codec, Size, float], VideoEncoder]
"""(codec, size, frames a second) -> encoder. Called on the encoding thread."""


def open_encoder(codec: Codec, size: Size, rate_hz: float) -> VideoEncoder:
    """Return a fresh encoder.

    Raises:
        EncodeError: the codec refuses the size.
    """
    match codec:
        case Codec.H264:
            return H264Encoder(size, rate_hz)
        case Codec.VP8:
            return Vp8Encoder(size, rate_hz)
        case Codec.JPEG:
            return JpegEncoder(size)
        case Codec.RGB24:
            return Rgb24Encoder(size)
