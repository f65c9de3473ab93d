"""The pixels of an open picture file, as a person sees them.

A large picture is converted strip by strip: Pillow would hold several whole copies, four bytes a
pixel each, and a small file may hold many pixels.
"""

import numpy as np
from PIL import Image

from reverie.media.types import Picture

ORIENTATION = 0x0112
"""EXIF tag: how to rotate the picture (JEITA CP-3451, 4.6.4)."""

STRIP_PIXELS = 2**20
_BACKGROUND = (255, 255, 255, 255)


def read_rgb(image: Image.Image, at_least: int = 0) -> Picture:
    """Return the pixels [H, W, 3] of an image, not rotated yet.

    Args:
        image: open, and not yet loaded.
        at_least: a sufficient side: a larger picture is reduced to twice that or a little more,
            each pixel the mean of those it replaces. 0: as it is.
    """
    image.load()
    factor = max(1, min(image.size) // (2 * at_least)) if at_least else 1
    width, height = image.width // factor, image.height // factor
    pixels_HWC = np.empty((height, width, 3), np.uint8)
    rows = max(1, STRIP_PIXELS // (image.width * factor))
    for top in range(0, height, rows):
        bottom = min(height, top + rows)
        strip = image.crop((0, top * factor, width * factor, bottom * factor))
        pixels_HWC[top:bottom] = np.asarray(_reduced(_as_rgb(strip), factor))
    return pixels_HWC


def upright(pixels_HWC: Picture, orientation: object) -> Picture:
    """Return the pixels rotated and mirrored by an EXIF tag of 1 to 8; else as they are."""
    turned = pixels_HWC
    if orientation in (5, 6, 7, 8):
        turned = turned.transpose(1, 0, 2)
    if orientation in (3, 4, 7, 8):
        turned = turned[::-1]
    if orientation in (2, 3, 6, 7):
        turned = turned[:, ::-1]
    return np.ascontiguousarray(turned)


def _reduced(strip: Image.Image, factor: int) -> Image.Image:
    return strip if factor == 1 else strip.reduce(factor)


def _as_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I") or image.mode == "F":
        return _deep_grey(image).convert("RGB")
    if image.has_transparency_data:
        seen = image.convert("RGBA")
        below = Image.new("RGBA", seen.size, _BACKGROUND)
        return Image.alpha_composite(below, seen).convert("RGB")
    return image.convert("RGB")


def _deep_grey(image: Image.Image) -> Image.Image:
    """Return 16-bit grey as 8-bit; Pillow itself would clip values above 255."""
    values = np.asarray(image).astype(np.float64)
    return Image.fromarray((values / 257).round().clip(0, 255).astype(np.uint8))
