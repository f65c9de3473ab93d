"""Decoded video frames to pixels: in their own colours, rotated by their metadata."""

import numpy as np
from av import VideoFrame
from av.error import FFmpegError
from av.video.reformatter import Interpolation

from reverie.media.errors import BadInputError
from reverie.media.types import Picture, Size
from reverie.media.video.pictures import IntakeLimits, check_size

QUARTER = 90
"""Degrees; cameras rotate by whole quarters."""


def upright_pixels(
    frame: VideoFrame, limits: IntakeLimits, at_least: Size | None = None
) -> Picture:
    """Return the pixels [H, W, 3] of a frame as a person would see it.

    Args:
        frame: of any layout.
        limits: its largest size.
        at_least: a sufficient size; a larger frame is reduced while it is converted, to twice
            that or a little more.

    Raises:
        BadInputError: it is too large, or of a kind that cannot be converted.
    """
    check_size(frame.width, frame.height, limits)
    try:
        small = frame if at_least is None else _reduced(frame, at_least)
        pixels_HWC = small.to_ndarray(format="rgb24").astype(np.uint8, copy=False)
    except (FFmpegError, ValueError) as error:
        raise BadInputError(f"a frame of {frame.format.name} cannot be read: {error}") from None
    turns = round(frame.rotation / QUARTER) % 4  # counter-clockwise, as `rot90` counts
    return np.ascontiguousarray(np.rot90(pixels_HWC, turns)) if turns else pixels_HWC


def _reduced(frame: VideoFrame, at_least: Size) -> VideoFrame:
    """Return a frame reduced by a whole number, each pixel the mean of those it replaces."""
    factor = min(frame.width, frame.height) // (2 * max(at_least.width, at_least.height))
    if factor < 2:
        return frame
    return frame.reformat(
        frame.width // factor, frame.height // factor, "rgb24", interpolation=Interpolation.AREA
    )
