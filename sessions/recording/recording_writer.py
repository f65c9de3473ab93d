"""A running recording: pictures and sound go to one file, commands and events to another."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from reverie.media import FormatError, MediaFrame, SoundPacket
from reverie.media.files.appended_file import AppendedFile
from reverie.media.files.fragmented_mp4 import FragmentedMp4, Recorded
from reverie.sessions.recording.input_recording_writer import InputRecordingWriter

_LINES_BYTES = 2**14
"""Lines are written with the next fragment, or when they reach this size."""


@dataclass(frozen=True, slots=True)
class RecordingEnds:
    """Callbacks of a writer, on the event loop.

    Attributes:
        grew: the recording has grown; about once a second.
        over: it has ended, for this reason; `finish` it.
    """

    grew: Callable[[], None]
    over: Callable[[str], None]


class RecordingWriter:
    """Records the output of a session until `stop`. Never waits for the disk."""

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
            longest_us: it ends after so much media time.
            inputs: the writers of pushed pictures, by input stream.
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
        """Size of all files."""
        inputs = sum(each.size_bytes for each in self.inputs.values())
        return self._mp4.recorded.size_bytes + self._lines_bytes + inputs

    @property
    def from_us(self) -> int | None:
        """Media time at which it begins; None before its first frame."""
        return self._mp4.from_us

    def picture(self, media: MediaFrame) -> None:
        """Record the next frame."""
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
        """Record the next packet of an audio stream."""
        if not self._over:
            self._mp4.sound(stream, packet)

    def line(self, kind: str, text: str) -> None:
        """Record a command or an event as a JSON object of that kind, at the present media time."""
        if self._over:
            return
        at_us = self._newest_us - self.from_us if self.from_us is not None else 0
        line = f'{{"at_us":{at_us},"{kind}":{text}}}\n'
        self._unwritten.append(line)
        self._unwritten_bytes += len(line)
        if self._unwritten_bytes > _LINES_BYTES:
            self._write_lines()

    def stop(self, reason: str) -> None:
        """Record nothing more, and call `over`; idempotent."""
        if not self._over:
            self._over = True
            self._video.append(self._mp4.finish())
            self._write_lines()
            for each in self.inputs.values():
                each.stop()
            self._ends.over(reason)

    async def finish(self) -> str | None:
        """Return once all files are closed; the reason if not everything is in them."""
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
