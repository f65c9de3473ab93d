"""Decoded video frames to pixels: their own colours, turned as their metadata says."""

import numpy as np
from av import VideoFrame
from av.error import FFmpegError

from reverie.media.errors import BadInputError
from reverie.media.pictures import IntakeLimits, check_size
from reverie.media.types import Picture

QUARTER = 90
"""Degrees; cameras turn by whole quarters."""


def upright_pixels(frame: VideoFrame, limits: IntakeLimits) -> Picture:
    """Return the pixels [H, W, 3] of a frame as a person would see it.

    Raises:
        BadInputError: it is too large, or of a kind that cannot be converted.
    """
    check_size(frame.width, frame.height, limits)
    try:
        pixels_HWC = frame.to_ndarray(format="rgb24").astype(np.uint8, copy=False)
    except (FFmpegError, ValueError) as error:
        raise BadInputError(f"a frame of {frame.format.name} cannot be read: {error}") from None
    turns = round(frame.rotation / QUARTER) % 4  # counter-clockwise, as `rot90` counts
    return np.ascontiguousarray(np.rot90(pixels_HWC, turns)) if turns else pixels_HWC
