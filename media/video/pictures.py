"""Untrusted picture files, to pixels: checked before they are decoded, then rotated upright.

Size and format come from the header, so that a small file with a huge picture in it is refused
before it costs memory. A large picture that is needed small is decoded small where its format can,
else reduced strip by strip, so that it is in memory only once. The result is what a person would
see: rotated by its EXIF tag, palettes and CMYK as colours, deep grey as grey, transparent pictures
over white, the first picture of an animation. Colour profiles are not applied.
"""

import struct
import zlib
from dataclasses import dataclass
from io import BytesIO

from PIL import Image, UnidentifiedImageError

from reverie.media.errors import BadInputError
from reverie.media.types import LARGEST_SIDE, Picture, Size
from reverie.media.video.picture_pixels import ORIENTATION, read_rgb, upright
from reverie.media.video.unread_kinds import unread_kind

FORMATS = ("jpeg", "png", "webp", "gif")
"""Formats that can be pushed as a file."""

PICTURE_FILE = "picture"
"""Codec of a picture file of any of these formats, which its first bytes tell."""

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
"""What Pillow raises for bytes that are no picture."""


@dataclass(frozen=True, slots=True)
class IntakeLimits:
    """Limits of pushed media.

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
        limits: its largest size.
        formats: those that are accepted.
        at_least: a sufficient size; a larger picture is reduced to about twice that.

    Raises:
        BadInputError: it has another format, or is too large, truncated or broken.
    """
    try:
        with Image.open(BytesIO(data), formats=[name.upper() for name in formats]) as image:
            check_size(image.width, image.height, limits)
            longest = 0 if at_least is None else max(at_least.width, at_least.height)
            if longest:
                image.draft(None, (longest, longest))
            return upright(read_rgb(image, longest), image.getexif().get(ORIENTATION))
    except _BOMBS:
        raise BadInputError(f"a picture has at most {limits.pixels} pixels") from None
    except UnidentifiedImageError:
        known, other = ", ".join(formats), unread_kind(data)
        text = (
            f"this is {other}, which is not" if other else "this is not a picture of a kind that is"
        )
        raise BadInputError(f"{text} read here ({known})") from None
    except _BROKEN as error:
        raise BadInputError(f"the picture cannot be read: {_told(error)}") from None


def is_picture(data: bytes) -> bool:
    """Tell whether a file begins like a picture of `FORMATS`."""
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


def _told(error: BaseException) -> str:
    text = str(error).partition("\n")[0][:120]
    return text or type(error).__name__
