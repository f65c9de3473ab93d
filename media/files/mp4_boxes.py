"""The boxes of a fragmented MP4 file (ISO/IEC 14496-12; AVC: 14496-15; Opus in ISOBMFF 0.8.1).

Every function returns whole boxes; `fragmented_mp4.py` makes a file of them.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from reverie.media.errors import FormatError
from reverie.media.video.sps import SPS, nal_units

PPS = 8
"""`nal_unit_type` of a picture parameter set (ITU-T H.264, table 7-1)."""

VIDEO_SCALE = 1_000_000
SOUND_SCALE = 48_000

_IDENTITY = struct.pack(">9I", 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)
_SYNC = 0x02000000
_NO_SYNC = 0x01010000
_DATA_OFFSET, _DURATIONS, _SIZES, _FLAGS = 0x1, 0x100, 0x200, 0x400
_BASE_IS_MOOF = 0x020000


def box(kind: bytes, *parts: bytes) -> bytes:
    """Return a box around its parts."""
    body = b"".join(parts)
    return struct.pack(">I4s", 8 + len(body), kind) + body


def full_box(kind: bytes, version: int, flags: int, *parts: bytes) -> bytes:
    """Return a box with a version and flags."""
    return box(kind, struct.pack(">I", version << 24 | flags), *parts)


@dataclass(frozen=True, slots=True)
class Mp4Sample:
    """One access unit, as it is stored.

    Attributes:
        duration: in units of its track's scale.
        sync: it can be decoded without earlier ones.
    """

    data: bytes
    duration: int
    sync: bool = True


@dataclass(frozen=True, slots=True)
class TrackRun:
    """Consecutive samples of one track; `start` is the time of the first."""

    track: int
    start: int
    samples: Sequence[Mp4Sample]


def avc_entry(key_frame: bytes, width: int, height: int) -> bytes:
    """Return the sample entry of H.264, from a key frame with its headers in band.

    Raises:
        FormatError: it has none.
    """
    units = list(nal_units(key_frame))
    sps = next((unit for unit in units if unit and unit[0] & 0x1F == SPS), None)
    pps = next((unit for unit in units if unit and unit[0] & 0x1F == PPS), None)
    if sps is None or pps is None or len(sps) < 4:
        raise FormatError("a key frame without parameter sets")
    config = box(
        b"avcC",
        bytes((1, *sps[1:4], 0xFF, 0xE1)),
        struct.pack(">H", len(sps)),
        sps,
        struct.pack(">BH", 1, len(pps)),
        pps,
    )
    colour = box(b"colr", b"nclx", struct.pack(">3HB", 1, 1, 1, 0))  # BT.709, limited range
    return box(
        b"avc1",
        struct.pack(">6xH16x2H2I4xH32x2H", 1, width, height, 0x480000, 0x480000, 1, 0x18, 0xFFFF),
        config,
        colour,
    )


def opus_entry(head: bytes, channels: int) -> bytes:
    """Return the sample entry of Opus, from an `OpusHead` (RFC 7845, 5.1).

    Raises:
        FormatError: it is none.
    """
    if len(head) < 19 or not head.startswith(b"OpusHead"):
        raise FormatError("no OpusHead")
    skip, rate_hz, gain = struct.unpack_from("<HIh", head, 10)
    config = box(b"dOps", struct.pack(">BBHIhB", 0, channels, skip, rate_hz, gain, 0))
    return box(b"Opus", struct.pack(">6xH8x2H4xI", 1, channels, 16, SOUND_SCALE << 16), config)


def video_track(track: int, width: int, height: int, entry: bytes) -> bytes:
    """Return the `trak` of pictures."""
    header = full_box(b"vmhd", 0, 1, bytes(8))
    return _track(track, VIDEO_SCALE, b"vide", header, entry, width=width, height=height)


def sound_track(track: int, entry: bytes) -> bytes:
    """Return the `trak` of sound."""
    return _track(track, SOUND_SCALE, b"soun", full_box(b"smhd", 0, 0, bytes(4)), entry)


def beginning(tracks: Sequence[bytes]) -> bytes:
    """Return the beginning of a file, before any sample: `ftyp` and `moov`."""
    count = len(tracks)
    header = struct.pack(">4I", 0, 0, 1000, 0) + struct.pack(">IH10x", 0x10000, 0x100)
    header += _IDENTITY + bytes(24) + struct.pack(">I", count + 1)
    extends = [
        full_box(b"trex", 0, 0, struct.pack(">5I", track, 1, 0, 0, 0))
        for track in range(1, count + 1)
    ]
    moov = box(b"moov", full_box(b"mvhd", 0, 0, header), *tracks, box(b"mvex", *extends))
    return box(b"ftyp", b"isom", struct.pack(">I", 0x200), b"isomiso5iso6mp41") + moov


def fragment(number: int, runs: Sequence[TrackRun]) -> bytes:
    """Return a `moof` and its `mdat`; each run holds one sample or more."""
    size = len(_moof(number, runs, [0] * len(runs)))
    offsets, end = [], size + 8
    for run in runs:
        offsets.append(end)
        end += sum(len(sample.data) for sample in run.samples)
    data = (sample.data for run in runs for sample in run.samples)
    return _moof(number, runs, offsets) + box(b"mdat", *data)


def _moof(number: int, runs: Sequence[TrackRun], offsets: Sequence[int]) -> bytes:
    parts = [full_box(b"mfhd", 0, 0, struct.pack(">I", number))]
    for run, offset in zip(runs, offsets, strict=True):
        rows = b"".join(
            struct.pack(">3I", each.duration, len(each.data), _SYNC if each.sync else _NO_SYNC)
            for each in run.samples
        )
        flags = _DATA_OFFSET | _DURATIONS | _SIZES | _FLAGS
        head = struct.pack(">Ii", len(run.samples), offset)
        parts.append(
            box(
                b"traf",
                full_box(b"tfhd", 0, _BASE_IS_MOOF, struct.pack(">I", run.track)),
                full_box(b"tfdt", 1, 0, struct.pack(">Q", run.start)),
                full_box(b"trun", 0, flags, head, rows),
            )
        )
    return box(b"moof", *parts)


def _track(
    track: int,
    scale: int,
    handler: bytes,
    media_header: bytes,
    entry: bytes,
    width: int = 0,
    height: int = 0,
) -> bytes:
    sound = handler == b"soun"
    head = struct.pack(">2I", 0, 0) + struct.pack(">3I8x", track, 0, 0)
    head += struct.pack(">4H", 0, 0, 0x100 if sound else 0, 0) + _IDENTITY
    head += struct.pack(">2I", width << 16, height << 16)
    table = box(
        b"stbl",
        full_box(b"stsd", 0, 0, struct.pack(">I", 1), entry),
        *(full_box(kind, 0, 0, bytes(4)) for kind in (b"stts", b"stsc")),
        full_box(b"stsz", 0, 0, bytes(8)),
        full_box(b"stco", 0, 0, bytes(4)),
    )
    here = full_box(b"url ", 0, 1)
    info = box(
        b"minf",
        media_header,
        box(b"dinf", full_box(b"dref", 0, 0, struct.pack(">I", 1), here)),
        table,
    )
    undetermined = 0x55C4  # the language "und"
    media = box(
        b"mdia",
        full_box(b"mdhd", 0, 0, struct.pack(">4I2H", 0, 0, scale, 0, undetermined, 0)),
        full_box(b"hdlr", 0, 0, struct.pack(">4x4s12x", handler), b"reverie\0"),
        info,
    )
    return box(b"trak", full_box(b"tkhd", 0, 3, head), media)
