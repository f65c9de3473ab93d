"""One recording while it is made: pictures and sound to one file, what was said to another."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from reverie.media import FormatError, MediaFrame, SoundPacket
from reverie.media.files.appended_file import AppendedFile
from reverie.media.files.fragmented_mp4 import FragmentedMp4, Recorded
from reverie.sessions.recording.input_recording_writer import InputRecordingWriter

_LINES_BYTES = 2**14
"""Lines are written with the next fragment, or when there are so many."""


@dataclass(frozen=True, slots=True)
class RecordingEnds:
    """Who hears from a tape, on the event loop.

    Attributes:
        grew: it holds more; about once a second.
        over: it cannot go on, for this reason; `finish` it.
    """

    grew: Callable[[], None]
    over: Callable[[str], None]


class RecordingWriter:
    """Takes what comes out of a session until `finish`. Never waits: the disk is another's."""

    def __init__(
        self,
        video: AppendedFile,
        lines: AppendedFile,
        sounds: Sequence[tuple[str, int]],
        longest_us: int,
        ends: RecordingEnds,
        inputs: Mapping[str, InputRecordingWriter] = MappingProxyType({}),
    ) -> None:
        """Record nothing yet.

        Args:
            sounds: the audio streams to come, each with its channels.
            longest_us: it is over after so much media time.
            inputs: take the pictures that go in, by their stream.
        """
        self._video = video
        self._lines = lines
        self._mp4 = FragmentedMp4(sounds)
        self._longest_us = longest_us
        self._ends = ends
        self.inputs = inputs
        self._unwritten: list[str] = []
        self._unwritten_bytes = 0
        self._lines_bytes = 0
        self._newest_us = 0
        self._over = False

    @property
    def recorded(self) -> Recorded:
        """What it holds."""
        return self._mp4.recorded

    @property
    def size_bytes(self) -> int:
        """Of all files."""
        beside = sum(each.size_bytes for each in self.inputs.values())
        return self._mp4.recorded.size_bytes + self._lines_bytes + beside

    @property
    def from_us(self) -> int | None:
        """Media time at which it begins; None before its first frame."""
        return self._mp4.from_us

    def picture(self, media: MediaFrame) -> None:
        """Take the next frame."""
        if self._over:
            return
        try:
            data = self._mp4.picture(media)
        except FormatError:
            self.stop("bad_format")
            return
        self._newest_us = media.tag.pts_us
        if data:
            self._append(data)

    def sound(self, stream: str, packet: SoundPacket) -> None:
        """Take the next packet of an audio stream."""
        if not self._over:
            self._mp4.sound(stream, packet)

    def line(self, kind: str, text: str) -> None:
        """Take something that was said: a JSON object, of a kind, at this moment."""
        if self._over:
            return
        at_us = self._newest_us - self.from_us if self.from_us is not None else 0
        line = f'{{"at_us":{at_us},"{kind}":{text}}}\n'
        self._unwritten.append(line)
        self._unwritten_bytes += len(line)
        if self._unwritten_bytes > _LINES_BYTES:
            self._write_lines()

    def stop(self, reason: str) -> None:
        """Take nothing more. Stopping twice is stopping once; `over` is told."""
        if not self._over:
            self._over = True
            self._video.append(self._mp4.finish())
            self._write_lines()
            for each in self.inputs.values():
                each.stop()
            self._ends.over(reason)

    async def finish(self) -> str | None:
        """Return once all files are closed; why not all is in them, if so."""
        for each in self.inputs.values():
            await each.finish()
        await self._video.close()
        await self._lines.close()
        return self._video.failure or self._lines.failure

    def _append(self, data: bytes) -> None:
        self._video.append(data)
        self._write_lines()
        self._ends.grew()
        if self.recorded.duration_us >= self._longest_us:
            self.stop("longest_s")

    def _write_lines(self) -> None:
        text = "".join(self._unwritten).encode()
        self._unwritten, self._unwritten_bytes = [], 0
        self._lines_bytes += len(text)
        self._lines.append(text)
