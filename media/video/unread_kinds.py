"""Common kinds of files that are not read here, by their first bytes.

They are refused by name, so that a person knows what to convert.
"""

from collections.abc import Mapping

HEIF_BRANDS: Mapping[bytes, str] = {
    **dict.fromkeys((b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx"), "a HEIC photo"),
    **dict.fromkeys((b"mif1", b"msf1", b"miaf"), "a HEIC photo"),
    **dict.fromkeys((b"avif", b"avis"), "an AVIF picture"),
}
"""Major brands of photographs in boxes (ISO/IEC 23008-12, annex B; AV1 Image File Format)."""

_BEGINNINGS: Mapping[bytes, str] = {
    b"II*\0": "a TIFF picture",
    b"MM\0*": "a TIFF picture",
    b"BM": "a BMP picture",
    b"icns": "an ICNS picture",
    b"\0\0\1\0": "an ICO picture",
    b"\xff\x0a": "a JPEG XL picture",
    b"\0\0\0\x0cJXL ": "a JPEG XL picture",
    b"\0\0\0\x0cjP  ": "a JPEG 2000 picture",
    b"<svg": "an SVG drawing",
    b"%PDF": "a PDF document",
    b"ID3": "a sound file",
    b"OggS": "an Ogg file",
    b"fLaC": "a sound file",
}


def unread_kind(data: bytes) -> str | None:
    """Return the kind of a file, if it is one of these."""
    if data[4:8] == b"ftyp":
        return HEIF_BRANDS.get(data[8:12])
    return next((name for head, name in _BEGINNINGS.items() if data.startswith(head)), None)
