"""A fragmented MP4 file, which can be played however its writing ends.

Access units go in as they were encoded for the clients; the bytes that come out are appended to the
file. Pure: no file, no clock. A complete fragment is never changed, so a process that is killed
loses only what was not returned yet.

Times are media time. They begin at 0 with the first key frame and always rise: a frame that would
go back is put a millisecond after the one before it, because later frames depend on it. Sound is
made continuous, with silence in gaps, so that players that ignore gaps keep it in step with the
pictures.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from reverie.media.audio.opus import silence
from reverie.media.audio.sound import OPUS_HZ, PACKET_US, SoundPacket
from reverie.media.errors import FormatError
from reverie.media.files.mp4_boxes import (
    SOUND_SCALE,
    Mp4Sample,
    TrackRun,
    avc_entry,
    beginning,
    fragment,
    opus_entry,
    sound_track,
    video_track,
)
from reverie.media.types import EncodedFrame, MediaFrame
from reverie.media.video.sps import nal_units

FRAGMENT_US = 1_000_000
"""About the length of a fragment: what a crash can lose."""

LEAST_US = 1_000
"""The shortest duration of a frame."""

SLACK_US = 1_000_000
"""How long pictures wait for their sound; after that there is silence."""

_PACKET = OPUS_HZ * PACKET_US // 1_000_000
_DELIMITER = 9  # access unit delimiters, which MP4 does not use


@dataclass(frozen=True, slots=True)
class _Picture:
    frame: EncodedFrame
    pts_us: int
    duration_us: int


@dataclass(slots=True)
class _Sound:
    """One audio stream: packets are counted from the beginning of the file."""

    channels: int
    packets: int = 0  # written or waiting
    waiting: list[Mp4Sample] = field(default_factory=list)

    @property
    def end_us(self) -> int:
        return self.packets * PACKET_US


@dataclass(frozen=True, slots=True)
class Recorded:
    """The contents of the file so far.

    Attributes:
        duration_us: of the pictures.
        left_out: missing frames: lost before they came here, or skipped after a loss.
    """

    frames: int = 0
    duration_us: int = 0
    size_bytes: int = 0
    left_out: int = 0


class FragmentedMp4:
    """Turns access units of one video and any audio streams into the bytes of a file."""

    def __init__(
        self, sounds: Sequence[tuple[str, int]] = (), fragment_us: int = FRAGMENT_US
    ) -> None:
        """Begin with the first key frame.

        Args:
            sounds: the audio streams to come, each with its channels.
            fragment_us: the length of a fragment.
        """
        self.recorded = Recorded()
        self._sounds = {name: _Sound(channels) for name, channels in sounds}
        self._fragment_us = fragment_us
        self._from_us: int | None = None  # media time at which the file begins
        self._newest: _Picture | None = None  # its duration is known only with the next one
        self._waiting: list[Mp4Sample] = []
        self._waiting_us = 0
        self._written_us = 0
        self._fragments = 0
        self._wants_key = True

    @property
    def from_us(self) -> int | None:
        """Media time at which the file begins; None before the first key frame."""
        return self._from_us

    def picture(self, media: MediaFrame) -> bytes:
        """Take the next frame; return the bytes to append, often none.

        Raises:
            FormatError: it is no H.264 that can be stored.
        """
        frame, pts_us, before = media.encoded, media.tag.pts_us, self._newest
        if self._from_us is not None:
            self._count(left_out=media.dropped)
        if not frame.key and (self._wants_key or media.dropped):
            self._wants_key = True
            if self._from_us is not None:
                self._count(left_out=1)
            return b""
        self._wants_key = False
        if before is not None:
            pts_us = max(pts_us, before.pts_us + LEAST_US)
        out = self._begun(frame, pts_us) if self._from_us is None else b""
        if before is not None:
            out += self._settled(before, pts_us)
        self._newest = _Picture(frame, pts_us, media.tag.duration_us)
        return out

    def sound(self, stream: str, packet: SoundPacket) -> None:
        """Take the next packet of an audio stream; it comes out with the pictures of its time."""
        sound, from_us = self._sounds[stream], self._from_us
        if from_us is None or packet.samples != _PACKET:
            return
        # To the nearest packet: a smaller deviation is not corrected.
        number = round((packet.pts_us - from_us) / PACKET_US)
        if number < sound.packets:
            return
        self._fill(sound, number)
        sound.waiting.append(Mp4Sample(packet.data, _PACKET))
        sound.packets += 1

    def lose(self) -> None:
        """Note that frames are missing: frames are skipped up to the next key frame."""
        self._wants_key = True

    def finish(self) -> bytes:
        """Return the rest: the newest frame and its sound."""
        newest, self._newest = self._newest, None
        if newest is None:
            return b""
        self._wants_key = True
        self._take(newest, newest.duration_us)
        return self._flushed(slack_us=0)

    def _begun(self, frame: EncodedFrame, pts_us: int) -> bytes:
        width, height = frame.format.width, frame.format.height
        width, height = width + width % 2, height + height % 2  # as it was coded
        tracks = [video_track(1, width, height, avc_entry(frame.data, width, height))]
        for number, sound in enumerate(self._sounds.values(), start=2):
            head = silence(sound.channels).description
            tracks.append(sound_track(number, opus_entry(head, sound.channels)))
        self._from_us = pts_us
        out = beginning(tracks)
        self._count(size_bytes=len(out))
        return out

    def _settled(self, picture: _Picture, until_us: int) -> bytes:
        """Take a frame with its duration; return a fragment when one is full."""
        self._take(picture, until_us - picture.pts_us)
        return self._flushed() if self._waiting_us >= self._fragment_us else b""

    def _take(self, picture: _Picture, duration_us: int) -> None:
        self._waiting.append(Mp4Sample(_stored(picture.frame.data), duration_us, picture.frame.key))
        self._waiting_us += duration_us
        self._count(frames=1, duration_us=duration_us)

    def _flushed(self, slack_us: int = SLACK_US) -> bytes:
        end_us = self._written_us + self._waiting_us
        runs = [TrackRun(1, self._written_us, self._waiting)]
        for number, sound in enumerate(self._sounds.values(), start=2):
            self._fill(sound, (end_us - slack_us) // PACKET_US)
            start = (sound.packets - len(sound.waiting)) * _PACKET
            if sound.waiting:
                runs.append(TrackRun(number, start, sound.waiting))
            sound.waiting = []
        self._fragments += 1
        out = fragment(self._fragments, runs)
        self._written_us, self._waiting, self._waiting_us = end_us, [], 0
        self._count(size_bytes=len(out))
        return out

    def _fill(self, sound: _Sound, packets: int) -> None:
        """Add silence up to packet number `packets`."""
        missing = packets - sound.packets
        if missing > 0:
            quiet = Mp4Sample(silence(sound.channels).packet, _PACKET)
            sound.waiting.extend([quiet] * missing)
            sound.packets = packets

    def _count(
        self, frames: int = 0, duration_us: int = 0, size_bytes: int = 0, left_out: int = 0
    ) -> None:
        before = self.recorded
        self.recorded = Recorded(
            before.frames + frames,
            before.duration_us + duration_us,
            before.size_bytes + size_bytes,
            before.left_out + left_out,
        )


def _stored(access_unit: bytes) -> bytes:
    """Return an Annex B access unit with lengths instead of start codes (14496-15, 4.3.2)."""
    units = [unit for unit in nal_units(access_unit) if unit and unit[0] & 0x1F != _DELIMITER]
    if not units:
        raise FormatError("an access unit without a NAL unit")
    return b"".join(len(unit).to_bytes(4, "big") + unit for unit in units)


assert SOUND_SCALE == OPUS_HZ, "packets are counted in units of the sound track"
