"""Decoding of WebRTC video with a limit on the size of pictures.

A key frame of a few bytes may declare 16,383 x 16,383 pixels, and a decoder allocates the memory
for that before its output can be checked. aiortc chooses decoders for the whole process, so the
limit of the newest server in the process applies.
"""

import logging
from functools import partial

from aiortc.codecs.base import Decoder
from aiortc.jitterbuffer import JitterFrame
from av.frame import Frame

from reverie.rtc.webrtc.aiortc_seams import set_max_pixels, wrap_decoders

logger = logging.getLogger(__name__)

_KEY_START = b"\x9d\x01\x2a"
"""Start code of a VP8 key frame (RFC 6386, 9.1); after it come 14 bits each of width and height."""


class BoundedDecoder(Decoder):
    """Passes frames to aiortc's decoder; a frame that is too large gives no picture."""

    def __init__(self, inner: Decoder, codec: str, pixels: int) -> None:
        """Limit a decoder that has decoded nothing yet.

        Args:
            inner: aiortc's.
            codec: its name, as in SDP.
            pixels: most pixels of a picture.
        """
        self._inner = inner
        self._is_vp8 = codec.upper() == "VP8"
        self._pixels = pixels
        self._refusing = False
        if codec.upper() == "H264":
            set_max_pixels(inner, pixels)

    def decode(self, encoded_frame: JitterFrame) -> list[Frame]:
        """Return the pictures of a frame; none for a large one and the frames that depend on it."""
        if self._is_vp8:
            size = vp8_size(encoded_frame.data)
            if size is not None:
                self._refuse(size if size[0] * size[1] > self._pixels else None)
            if self._refusing:
                return []
        return self._inner.decode(encoded_frame)

    def _refuse(self, size: tuple[int, int] | None) -> None:
        if size is not None and not self._refusing:
            most = f"{self._pixels} pixels (input_pixels)"
            logger.warning("a camera sends %dx%d pixels; the limit is %s", *size, most)
        self._refusing = size is not None


def vp8_size(data: bytes) -> tuple[int, int] | None:
    """Return the width and height in a VP8 key frame; None for any other frame."""
    if len(data) < 10 or data[0] & 1 or data[3:6] != _KEY_START:
        return None
    width, height = (int.from_bytes(data[at : at + 2], "little") & 0x3FFF for at in (6, 8))
    return width, height


def bound_decoders(pixels: int) -> None:
    """Limit all video decoders that aiortc creates from now on in this process."""
    wrap_decoders(partial(_bounded, pixels))


def _bounded(pixels: int, inner: Decoder, codec: str) -> Decoder:
    return BoundedDecoder(inner, codec, pixels) if codec.upper() in ("VP8", "H264") else inner
