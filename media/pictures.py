"""Picture files from strangers, to pixels: looked at before they are decoded, then set upright.

Size and format come from the header, so that a small file with a huge picture in it is refused
before it costs memory. What a person would see is what comes out: turned as the EXIF tag says,
palettes and CMYK as colours, deep grey as grey, transparent over white, of an animation the first
picture. Colour profiles are not applied.
"""

import struct
import zlib
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from reverie.media.errors import BadInputError
from reverie.media.types import LARGEST_SIDE, Picture, Size

FORMATS = ("jpeg", "png", "webp", "gif")
"""What can be pushed as a file."""

PICTURE_FILE = "picture"
"""Codec of a picture file of any of the kinds, told by its first bytes."""

_BACKGROUND = (255, 255, 255)
_BOMBS = (Image.DecompressionBombError, Image.DecompressionBombWarning)
_BROKEN = (
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    IndexError,
    KeyError,
    EOFError,
    OverflowError,
    MemoryError,
    struct.error,
    zlib.error,
)
"""What Pillow raises over bytes that are no picture."""


@dataclass(frozen=True, slots=True)
class IntakeLimits:
    """How large a thing may be that somebody pushes.

    Attributes:
        pixels: of one picture or frame, width times height.
        sound_s: of one piece of sound.
        clip_s: of a clip.
    """

    pixels: int = 2**24
    sound_s: float = 10.0
    clip_s: float = 120.0


DEFAULT_LIMITS = IntakeLimits()


def read_picture(
    data: bytes,
    limits: IntakeLimits = DEFAULT_LIMITS,
    *,
    formats: tuple[str, ...] = FORMATS,
    at_least: Size | None = None,
) -> Picture:
    """Return the picture [H, W, 3] in a file.

    Args:
        data: the whole file.
        limits: what it may hold.
        formats: what it may be.
        at_least: a size that is enough; a large JPEG is then decoded smaller.

    Raises:
        BadInputError: it is none of these, too large, cut short or broken.
    """
    try:
        with Image.open(BytesIO(data), formats=[name.upper() for name in formats]) as image:
            check_size(image.width, image.height, limits)
            if at_least is not None:
                longest = max(at_least.width, at_least.height)
                image.draft(None, (longest, longest))
            return np.asarray(_as_rgb(ImageOps.exif_transpose(image)))
    except _BOMBS:
        raise BadInputError(f"a picture has at most {limits.pixels} pixels") from None
    except UnidentifiedImageError:
        known = ", ".join(formats)
        raise BadInputError(f"this is no picture of a kind that is read here ({known})") from None
    except _BROKEN as error:
        raise BadInputError(f"the picture cannot be read: {_told(error)}") from None


def is_picture(data: bytes) -> bool:
    """Tell whether a file begins as pictures of `FORMATS` do."""
    if data.startswith(b"RIFF"):
        return data[8:12] == b"WEBP"
    return data.startswith((b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a"))


def check_size(width: int, height: int, limits: IntakeLimits) -> None:
    """Accept a size.

    Raises:
        BadInputError: a side is 0 or too long, or there are too many pixels.
    """
    if not (1 <= width <= LARGEST_SIDE and 1 <= height <= LARGEST_SIDE):
        text = f"a picture has sides of 1 to {LARGEST_SIDE} pixels, not {width}x{height}"
        raise BadInputError(text)
    if width * height > limits.pixels:
        text = f"a picture has at most {limits.pixels} pixels (input_pixels), not {width}x{height}"
        raise BadInputError(text)


def _as_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I") or image.mode == "F":
        return _deep_grey(image).convert("RGB")
    if image.has_transparency_data:
        seen = image.convert("RGBA")
        below = Image.new("RGBA", seen.size, (*_BACKGROUND, 255))
        return Image.alpha_composite(below, seen).convert("RGB")
    return image.convert("RGB")


def _deep_grey(image: Image.Image) -> Image.Image:
    """Return 16-bit grey as 8-bit; Pillow's own way cuts off what is above 255."""
    values = np.asarray(image).astype(np.float64)
    return Image.fromarray((values / 257).round().clip(0, 255).astype(np.uint8))


def _told(error: BaseException) -> str:
    text = str(error).partition("\n")[0][:120]
    return text or type(error).__name__
