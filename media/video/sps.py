"""Reading the codec string out of an H.264 stream (ITU-T H.264, 7.3.2.1.1; RFC 6381, 3.3)."""

from collections.abc import Iterator

from reverie.media.errors import FormatError

SPS = 7
"""`nal_unit_type` of a sequence parameter set."""


def nal_units(access_unit: bytes) -> Iterator[bytes]:
    """Yield the NAL units of an Annex B access unit, without start codes."""
    start = access_unit.find(b"\0\0\1")
    while start >= 0:
        end = access_unit.find(b"\0\0\1", start + 3)
        unit = access_unit[start + 3 : end if end >= 0 else len(access_unit)]
        yield unit.rstrip(b"\0") if end >= 0 else unit
        start = end


def codec_string(access_unit: bytes) -> str:
    """Return `avc1.PPCCLL`: profile, constraint flags and level of the stream's first SPS.

    Raises:
        FormatError: the access unit holds none, so it is not a key frame with headers in band.
    """
    for unit in nal_units(access_unit):
        if unit and unit[0] & 0x1F == SPS and len(unit) >= 4:
            return f"avc1.{unit[1:4].hex()}"
    raise FormatError("no sequence parameter set in the access unit")
