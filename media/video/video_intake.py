"""One input stream of pictures, in the size and rate that the model takes."""

import numpy as np
from av import VideoFrame

from reverie.media.errors import BadInputError
from reverie.media.raw import Piece, RawVideo
from reverie.media.types import Picture, Size
from reverie.media.video.access_units import AccessUnits
from reverie.media.video.fitting import fit
from reverie.media.video.frame_rate import SteadyRate
from reverie.media.video.pictures import (
    DEFAULT_LIMITS,
    FORMATS,
    PICTURE_FILE,
    IntakeLimits,
    check_size,
    read_picture,
)
from reverie.media.video.upright import upright_pixels


class VideoIntake:
    """Decodes, checks, rotates and scales. Blocks: one call at a time, on its own thread."""

    def __init__(
        self, size: Size, rate_hz: float = 0.0, limits: IntakeLimits = DEFAULT_LIMITS
    ) -> None:
        """Make pictures of `size`; a rate of 0 keeps them as they come, as from a camera."""
        self._size = size
        self._limits = limits
        self._steady = SteadyRate(rate_hz) if rate_hz else None
        self._units = AccessUnits(limits)

    def take(self, raw: RawVideo) -> tuple[Piece, ...]:
        """Return the pictures that this one completes: none, one or several.

        Raises:
            BadInputError: it cannot be read or is too large; earlier pictures are not affected.
        """
        return self._paced(self._pictures(raw), last=raw.last)

    @property
    def open(self) -> bool:
        """Whether a clip has begun and not ended."""
        return self._steady is not None and self._steady.open

    def finish(self) -> tuple[Piece, ...]:
        """End the clip; return the pictures that were held back."""
        rest = [
            (pts_us, upright_pixels(frame, self._limits, self._size))
            for pts_us, frame in self._units.finish()
        ]
        pieces = self._paced(rest, last=bool(rest))
        return pieces if self._steady is None else (*pieces, *self._steady.finish())

    def _paced(self, pictures: list[tuple[int, Picture]], *, last: bool) -> tuple[Piece, ...]:
        pieces = [
            Piece(pts_us, fit(picture, self._size), last and index == len(pictures) - 1)
            for index, (pts_us, picture) in enumerate(pictures)
        ]
        if self._steady is None:
            return tuple(pieces)
        return tuple(even for piece in pieces for even in self._steady.take(piece))

    def _pictures(self, raw: RawVideo) -> list[tuple[int, Picture]]:
        if isinstance(raw.data, VideoFrame):
            return [(raw.pts_us, upright_pixels(raw.data, self._limits, self._size))]
        if isinstance(raw.data, np.ndarray):
            return [(raw.pts_us, self._checked(raw.data))]
        if raw.codec == "h264":
            frames = self._units.take(raw.data, raw.pts_us, last=raw.last)
            return [
                (pts_us, upright_pixels(frame, self._limits, self._size))
                for pts_us, frame in frames
            ]
        if raw.codec == "rgb24":
            return [(raw.pts_us, self._rows(raw, raw.data))]
        formats = FORMATS if raw.codec == PICTURE_FILE else (raw.codec,)
        picture = read_picture(raw.data, self._limits, formats=formats, at_least=self._size)
        return [(raw.pts_us, picture)]

    def _rows(self, raw: RawVideo, data: bytes) -> Picture:
        check_size(raw.width, raw.height, self._limits)
        expected = raw.width * raw.height * 3
        if len(data) != expected:
            text = f"{raw.width}x{raw.height} pixels are {expected} bytes, not {len(data)}"
            raise BadInputError(text)
        return np.frombuffer(data, np.uint8).reshape(raw.height, raw.width, 3)

    def _checked(self, pixels_HWC: Picture) -> Picture:
        if pixels_HWC.dtype != np.uint8 or pixels_HWC.ndim != 3 or pixels_HWC.shape[2] != 3:
            shape = f"{pixels_HWC.dtype} {list(pixels_HWC.shape)}"
            raise BadInputError(f"pixels are uint8 [H, W, 3], not {shape}")
        check_size(pixels_HWC.shape[1], pixels_HWC.shape[0], self._limits)
        return pixels_HWC
