"""The files of recordings, for the event loop: one thread does all work on them."""

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from reverie.media import FormatError
from reverie.media.files.appended_file import AppendedFile
from reverie.media.files.fragmented_mp4 import Recorded
from reverie.media.files.replay import Group, make_clip
from reverie.media.job_thread import JobThread
from reverie.sessions.protocol.errors import RecordingsError
from reverie.sessions.recording.disk_jobs import LEAVE_S
from reverie.sessions.recording.folder import VIDEO, RecordingFolder
from reverie.sessions.recording.options import RecordingOptions
from reverie.sessions.recording.recording import Entry

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class KeptClip:
    """What became of a clip.

    Attributes:
        recorded: what is in its file.
        from_us: media time of its first frame; -1 without one.
        failure: why it is not whole; empty when it is.
    """

    recorded: Recorded
    from_us: int
    failure: str = ""


class RecordingFiles:
    """The folder of a server's recordings. Only awaited calls wait for the disk.

    Attributes:
        thread: does all work on the files.
    """

    def __init__(self, options: RecordingOptions) -> None:
        """Touch no file yet: `open` does."""
        self.thread = JobThread("recordings")
        self._options = options
        self._folder: RecordingFolder | None = None

    async def open(self) -> list[Entry]:
        """Open the folder and return its entries.

        Where recording is not enabled, only recordings of an earlier server are kept up.

        Raises:
            RecordingsError: it cannot be used.
        """
        if not self._options.enabled and not await self._in_thread(self._has_leftovers):
            return []
        try:
            folder = await self._in_thread(lambda: RecordingFolder(self._options.folder))
        except OSError as error:
            without = "recordings.enabled: false runs without it"
            raise RecordingsError(
                f"recordings.folder cannot be used: {error}; {without}"
            ) from error
        self._folder = folder
        return await self._in_thread(folder.read_all)

    async def close(self) -> None:
        """Close the folder, and delete a private one."""
        if self._folder is not None:
            try:
                async with asyncio.timeout(LEAVE_S):
                    await self._in_thread(self._folder.remove_if_private)
            except TimeoutError:
                logger.error("the disk does not answer; the folder of recordings is left as it is")
        self.thread.shutdown(wait=False)

    def path(self, id: str, suffix: str) -> Path:
        """Return the path of a recording's file."""
        return self._opened.file(id, suffix)

    def new(self, id: str, suffix: str, failed: Callable[[str], None]) -> AppendedFile:
        """Return a new file of a recording, to append to.

        Args:
            id: the recording's.
            suffix: the file's.
            failed: called once with the reason when the file cannot be written.
        """
        path = self.path(id, suffix)
        return AppendedFile(path, self.thread, failed, open_file=self._opened.create)

    async def write(self, entry: Entry) -> None:
        """Write the entry of a recording; a failure is logged."""
        folder = self._opened
        try:
            await self._in_thread(lambda: folder.write(entry))
        except OSError as error:
            logger.warning(
                "the entry of recording %s cannot be written: %s", entry.recording.id, error
            )

    async def mend(self, id: str) -> Recorded:
        """Cut a video to its last whole fragment, without which it cannot be played."""
        folder = self._opened
        return await self._in_thread(lambda: folder.mend(id))

    async def delete(self, id: str) -> None:
        """Delete the files of a recording."""
        folder = self._opened
        await self._in_thread(lambda: folder.delete(id))

    async def keep_clip(
        self, id: str, groups: Sequence[Group], sounds: Sequence[tuple[str, int]]
    ) -> KeptClip:
        """Make a clip of groups and write it."""
        try:
            clip = await self._in_thread(lambda: make_clip(groups, sounds))
        except FormatError:
            return KeptClip(Recorded(), -1, "bad_format")
        failures: list[str] = []
        path, size, create = self.path(id, VIDEO), len(clip.data), self._opened.create
        file = AppendedFile(path, self.thread, failures.append, size, open_file=create)
        file.append(clip.data)
        await file.close()
        return KeptClip(clip.recorded, clip.from_us, failures[0] if failures else "")

    @property
    def _opened(self) -> RecordingFolder:
        assert self._folder is not None, "recordings are started before they are used"
        return self._folder

    def _has_leftovers(self) -> bool:
        folder = self._options.folder
        return folder is not None and folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.thread, work)
