"""The last seconds of a session as they were encoded, for a clip: bounded in time and in bytes."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from reverie.media.audio.sound import SoundPacket
from reverie.media.files.fragmented_mp4 import FragmentedMp4, Recorded
from reverie.media.types import MediaFrame


@dataclass(frozen=True, slots=True)
class Group:
    """A key frame, the frames that depend on it, and the sound of that time."""

    frames: Sequence[MediaFrame]
    sounds: Sequence[tuple[str, SoundPacket]]


@dataclass(frozen=True, slots=True)
class _Group:
    frames: list[MediaFrame]
    sounds: list[tuple[str, SoundPacket]]

    @property
    def size_bytes(self) -> int:
        frames = sum(len(media.encoded.data) for media in self.frames)
        return frames + sum(len(packet.data) for _, packet in self.sounds)

    @property
    def from_us(self) -> int:
        return self.frames[0].tag.pts_us


@dataclass(frozen=True, slots=True)
class ReplayClip:
    """A whole file; `from_us` is the media time at which it begins."""

    data: bytes
    recorded: Recorded
    from_us: int


class Replay:
    """Keeps whole groups; drops the oldest, even the only one when it is too large."""

    def __init__(self, keep_us: int, keep_bytes: int) -> None:
        """Keep at least `keep_us`, within `keep_bytes`."""
        self._keep_us = keep_us
        self._keep_bytes = keep_bytes
        self._groups: deque[_Group] = deque()
        self._bytes = 0
        self._lost = True  # frames are missing: skip up to the next key frame

    @property
    def size_bytes(self) -> int:
        """Bytes that are kept."""
        return self._bytes

    @property
    def kept_us(self) -> int:
        """Media time that is kept."""
        newest_us = self._newest_us
        return newest_us - self._groups[0].from_us if newest_us is not None else 0

    def picture(self, media: MediaFrame) -> None:
        """Take the next frame."""
        if media.encoded.key:
            self._groups.append(_Group([], []))
            self._lost = False
        elif self._lost or media.dropped:
            self._lost = True
            return
        newest_us = self._newest_us
        if newest_us is not None and media.tag.pts_us <= newest_us:
            return  # a repeated frame that is here already
        self._groups[-1].frames.append(media)
        self._bytes += len(media.encoded.data)
        self._forget()

    def sound(self, stream: str, packet: SoundPacket) -> None:
        """Take the next packet of an audio stream."""
        if self._groups:
            self._groups[-1].sounds.append((stream, packet))
            self._bytes += len(packet.data)
            self._forget()

    def lose(self) -> None:
        """Note that frames are missing."""
        self._lost = True

    def last(self, seconds_us: int) -> tuple[Group, ...]:
        """Return copies of the groups of the last `last_us`; there may be none."""
        newest_us = self._newest_us
        if newest_us is None:
            return ()
        groups = [group for group in self._groups if group.frames]
        within = sum(group.from_us > newest_us - seconds_us for group in groups)
        first = max(0, len(groups) - within - 1)
        return tuple(Group(tuple(each.frames), tuple(each.sounds)) for each in groups[first:])

    @property
    def _newest_us(self) -> int | None:
        for group in reversed(self._groups):
            if group.frames:
                return group.frames[-1].tag.pts_us
        return None

    def _forget(self) -> None:
        if len(self._groups) == 1 and self._bytes > self._keep_bytes:
            self._groups.clear()
            self._bytes, self._lost = 0, True
        while len(self._groups) > 1:
            oldest, second = self._groups[0], self._groups[1]
            newest_us = self._newest_us or 0
            enough = bool(second.frames) and newest_us - second.from_us >= self._keep_us
            if oldest.frames and not enough and self._bytes <= self._keep_bytes:
                return
            self._groups.popleft()
            self._bytes -= oldest.size_bytes


def make_clip(groups: Sequence[Group], sounds: Sequence[tuple[str, int]]) -> ReplayClip:
    """Return the file of one or more groups. Slow for many; runs on any thread.

    Args:
        sounds: the audio streams, each with its channels.
    """
    file = FragmentedMp4(sounds)
    parts = []
    for group in groups:
        # The first frame begins the file, so that the sound of its time has a place there.
        parts.append(file.picture(group.frames[0]))
        for stream, packet in group.sounds:
            file.sound(stream, packet)
        parts += [file.picture(media) for media in group.frames[1:]]
    parts.append(file.finish())
    return ReplayClip(b"".join(parts), file.recorded, groups[0].frames[0].tag.pts_us)
