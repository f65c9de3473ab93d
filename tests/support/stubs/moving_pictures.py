"""Pictures and clips for tests: what is in them can be told after any codec."""

import io
import struct
import zlib
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[np.uint8]

RED, GREEN, BLUE, WHITE = (220, 30, 30), (30, 200, 30), (30, 30, 220), (240, 240, 240)
CORNERS = (RED, GREEN, BLUE, WHITE)
"""Top left, top right, bottom left, bottom right."""


def quarters(width: int, height: int) -> Pixels:
    """Return a picture whose quarters are red, green, blue and white."""
    picture = np.zeros((height, width, 3), np.uint8)
    half, middle = (height + 1) // 2, (width + 1) // 2
    picture[:half, :middle], picture[:half, middle:] = RED, GREEN
    picture[half:, :middle], picture[half:, middle:] = BLUE, WHITE
    return picture


def corners(picture: NDArray[Any]) -> list[tuple[int, ...]]:
    """Return which of `CORNERS` each quarter looks most like."""
    height, width, _ = picture.shape
    places = [(y, x) for y in (height // 4, 3 * height // 4) for x in (width // 4, 3 * width // 4)]
    return [nearest(picture[y, x]) for y, x in places]


def nearest(colour: NDArray[Any]) -> tuple[int, ...]:
    """Return the corner colour that is nearest."""
    return min(CORNERS, key=lambda each: int(np.abs(colour.astype(int) - each).sum()))


def grey(level: int, width: int = 64, height: int = 48) -> Pixels:
    """Return a plain picture, for clips whose frames are told by their level."""
    return np.full((height, width, 3), level, np.uint8)


def file_of(picture: Pixels | Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    """Return a picture as a file."""
    image = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def turned(picture: Pixels, orientation: int, kind: str = "JPEG") -> bytes:
    """Return a file that asks for a turn by its EXIF tag."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    return file_of(picture, kind, exif=exif)


def clip_of(
    pictures: Sequence[Pixels],
    times_ms: Sequence[int],
    *,
    codec: str = "libx264",
    kind: str = "mp4",
    pixels: str = "yuv420p",
    **options: str,
) -> bytes:
    """Return a clip of pictures of one size, each at its own time."""
    file = io.BytesIO()
    with av.open(file, "w", format=kind) as container:
        stream: Any = container.add_stream(codec, rate=30, options={"crf": "12", **options})
        stream.height, stream.width, _ = pictures[0].shape
        stream.pix_fmt = pixels
        stream.codec_context.time_base = stream.time_base = Fraction(1, 1000)
        for picture, time_ms in zip(pictures, times_ms, strict=True):
            frame = av.VideoFrame.from_ndarray(picture, "rgb24")
            frame.pts, frame.time_base = time_ms, Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return file.getvalue()


def turned_clip(clip: bytes) -> bytes:
    """Return an MP4 whose metadata asks for a quarter turn clockwise, as telephones write it."""
    matrix = (
        clip.index(b"tkhd") + 4 + 40
    )  # version and flags, times, track, duration, layer, volume
    quarter = struct.pack(">9i", 0, 0x10000, 0, -0x10000, 0, 0, 0, 0, 0x40000000)
    return clip[:matrix] + quarter + clip[matrix + 36 :]


def access_units(
    pictures: Sequence[Pixels], times_ms: Sequence[int], **options: str
) -> list[tuple[int, bytes]]:
    """Return H.264 access units in the order in which they are sent, with their times in us."""
    encoder: Any = av.CodecContext.create("libx264", "w")
    encoder.height, encoder.width, _ = pictures[0].shape
    encoder.pix_fmt, encoder.time_base = "yuv420p", Fraction(1, 1000)
    encoder.framerate = Fraction(30)
    encoder.options = {"crf": "12", **options}
    packets = []
    for picture, time_ms in zip(pictures, times_ms, strict=True):
        frame = av.VideoFrame.from_ndarray(picture, "rgb24")
        frame.pts, frame.time_base = time_ms, Fraction(1, 1000)
        packets += encoder.encode(frame)
    packets += encoder.encode(None)
    return [(round(packet.pts * 1000), bytes(packet)) for packet in packets]


def bomb(width: int, height: int) -> bytes:
    """Return a whole PNG of one colour, one bit a pixel; it is a few kB whatever its size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    row = b"\0" * (1 + (width + 7) // 8)
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(row * 100) for _ in range(height // 100)) + packer.flush()
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
