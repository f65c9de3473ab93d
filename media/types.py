"""Frames between model and client, before and after encoding.

Shape legend: H height, W width, C the three channels of RGB. All times are media time in
microseconds on the session's output clock.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from reverie.media.errors import UnsupportedPictureError

Picture = NDArray[np.uint8]
"""One RGB frame [H, W, 3]."""

LARGEST_SIDE = 8192
"""Pixels: the longest side that an encoder takes."""


class Codec(StrEnum):
    """The video codecs that a client can ask for."""

    H264 = "h264"
    VP8 = "vp8"
    JPEG = "jpeg"
    RGB24 = "rgb24"


class Container(StrEnum):
    """The layout of the bytes of one frame."""

    ANNEXB = "annexb"
    VP8 = "vp8"
    JPEG = "jpeg"
    RAW = "raw"


@dataclass(frozen=True, slots=True)
class Size:
    """Pixels across and down."""

    width: int
    height: int

    @classmethod
    def of(cls, frame_HWC: Picture) -> "Size":
        """Return the size of a frame that can be encoded.

        Raises:
            UnsupportedPictureError: it is not [H, W, 3] of uint8, or a side is 0 or too long.
        """
        if frame_HWC.dtype != np.uint8 or frame_HWC.ndim != 3 or frame_HWC.shape[2] != 3:
            raise UnsupportedPictureError(
                f"frames are uint8 [H, W, 3], not {frame_HWC.dtype} {list(frame_HWC.shape)}"
            )
        height, width, _ = frame_HWC.shape
        if not (1 <= width <= LARGEST_SIDE and 1 <= height <= LARGEST_SIDE):
            raise UnsupportedPictureError(
                f"frames have sides of 1 to {LARGEST_SIDE} pixels, not {width}x{height}"
            )
        return cls(width, height)


@dataclass(frozen=True, slots=True)
class StreamFormat:
    """How to decode what follows; a change of it is a new `media.init`.

    Attributes:
        codec: as for WebCodecs, such as `avc1.42c01f` or `vp8`; or `jpeg`, or `rgb24`.
        width: pixels to show; a decoder may return more, because H.264 pads odd sides by one, on
            the right and at the bottom.
        height: likewise.
    """

    codec: str
    container: Container
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class EncodedFrame:
    """One access unit or picture.

    Attributes:
        key: it can be decoded without earlier ones.
    """

    data: bytes
    pts_us: int
    key: bool
    format: StreamFormat


@dataclass(frozen=True, slots=True)
class FrameTag:
    """The origin of a frame and when it is shown; passed through unchanged.

    Attributes:
        chunk: the loop's chunk that it belongs to.
        frame: which frame of its chunk.
        last: whether it is the last one of its chunk.
        step: the unit that produced it.
        discontinuity: it does not follow from the frame before it; it becomes a key frame.
    """

    pts_us: int
    duration_us: int
    chunk: int
    frame: int
    last: bool
    step: int
    discontinuity: bool = False


@dataclass(frozen=True, slots=True)
class MediaFrame:
    """A frame as delivered to a subscriber.

    Attributes:
        dropped: frames published just before this one and skipped, because encoding could not
            keep up. The subscriber counts the frames that it skips itself.
    """

    encoded: EncodedFrame
    tag: FrameTag
    dropped: int = 0


class VideoEncoder(Protocol):
    """Encodes pictures of one size, in order. One thread uses it at a time."""

    def encode(self, frame_HWC: Picture, pts_us: int, force_key: bool) -> EncodedFrame:
        """Encode one frame at once; nothing is held back.

        Args:
            pts_us: greater than that of the frame before.
            force_key: make it decodable without earlier ones; the first frame always is.
        """

    def close(self) -> None:
        """Free its resources. Idempotent."""


@runtime_checkable
class RateLimited(Protocol):
    """An encoder whose bitrate can be limited."""

    def limit(self, bits_per_s: int | None) -> None:
        """Limit the bitrate from the next frame on, which may become a key frame.

        Args:
            bits_per_s: None: as many as the quality needs.
        """
