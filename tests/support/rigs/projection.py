"""Playing a recording back, and something to record."""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import av
import numpy as np
from listening import tone
from numpy.typing import NDArray

from reverie.media import FrameTag, MediaFrame, Picture, Size, SoundPacket, SoundTag
from reverie.media.audio.sound import AudioCodec, SoundShape
from reverie.media.audio.sound_queue import QueuedSound
from reverie.media.audio.sound_rendition import SoundRendition
from reverie.media.video.h264 import H264Encoder


@dataclass(frozen=True)
class Played:
    """What a player gets out of a file.

    Attributes:
        pts_us: of each picture.
        sound: of each audio track, as float samples at 48 kHz.
    """

    pictures: list[NDArray[np.uint8]]
    pts_us: list[int]
    durations_us: list[int]
    sound: list[NDArray[np.float32]]
    sound_pts_us: list[list[int]]


def played(data: bytes) -> Played:
    """Decode a whole file, as a player does that reads it once."""
    shown = Played([], [], [], [], [])
    with av.open(io.BytesIO(data), "r") as file:
        _play(file, shown)
    return shown


def _play(file: av.container.InputContainer, shown: Played) -> None:
    order = {stream.index: index for index, stream in enumerate(file.streams.audio)}
    shown.sound.extend(np.zeros(0, np.float32) for _ in order)
    shown.sound_pts_us.extend([] for _ in order)
    for packet in file.demux():
        for frame in packet.decode():
            if isinstance(frame, av.VideoFrame):
                assert frame.pts is not None
                assert frame.time_base is not None
                shown.pictures.append(np.asarray(frame.to_ndarray(format="rgb24"), np.uint8))
                shown.pts_us.append(round(frame.pts * frame.time_base * 1_000_000))
                duration = (frame.duration or 0) * frame.time_base
                shown.durations_us.append(round(duration * 1_000_000))
            elif isinstance(frame, av.AudioFrame):
                at = order[packet.stream.index]
                part = np.asarray(frame.to_ndarray(), np.float32)[0]
                shown.sound[at] = np.concatenate((shown.sound[at], part))
                assert frame.pts is not None
                shown.sound_pts_us[at].append(round(frame.pts / 48_000 * 1_000_000))


def picture(number: int, width: int = 64, height: int = 64) -> Picture:
    """Return a picture whose brightness tells its number, modulo 25."""
    return np.full((height, width, 3), number % 25 * 10, np.uint8)


def number_of(picture_HWC: NDArray[np.uint8]) -> int:
    """Return the number of a picture, modulo 25."""
    return round(float(picture_HWC.mean()) / 10)


class Camera:
    """Encodes numbered pictures, as a fan-out hands them to a watcher."""

    def __init__(self, width: int = 64, height: int = 64, frame_us: int = 50_000) -> None:
        self._encoder = H264Encoder(Size(width, height), 1e6 / frame_us)
        self._size = (width, height)
        self._frame_us = frame_us
        self._count = 0

    def take(self, pts_us: int | None = None, key: bool | None = None) -> MediaFrame:
        number, self._count = self._count, self._count + 1
        if pts_us is None:
            pts_us = number * self._frame_us
        force = number % 40 == 0 if key is None else key
        # The encoder wants times that rise; what the frame is said to be is another matter.
        encoded = self._encoder.encode(picture(number, *self._size), number * 1000, force)
        tag = FrameTag(pts_us, self._frame_us, number // 4, number % 4, number % 4 == 3, number)
        return MediaFrame(encoded, tag)

    def limit(self, bits_per_s: int | None) -> None:
        self._encoder.limit(bits_per_s)

    def film(self, count: int) -> list[MediaFrame]:
        return [self.take() for _ in range(count)]


def spoken(seconds: float, hz: float = 440.0, from_us: int = 0) -> Sequence[SoundPacket]:
    """Return the packets of a tone."""
    rendition = SoundRendition(AudioCodec.OPUS, SoundShape(48_000, 1))
    samples = tone(hz, seconds)
    return rendition.encode(QueuedSound(samples, SoundTag(from_us))) + rendition.finish()


def interleaved(
    film: Iterable[MediaFrame], packets: Iterable[SoundPacket]
) -> list[MediaFrame | SoundPacket]:
    """Return both in the order of their times."""
    both: list[MediaFrame | SoundPacket] = [*film, *packets]
    return sorted(
        both, key=lambda each: each.tag.pts_us if isinstance(each, MediaFrame) else each.pts_us
    )
