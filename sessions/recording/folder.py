"""The folder of the recordings. Blocking file work, for the one thread that does it."""

import contextlib
import logging
import os
import re
import secrets
import shutil
import tempfile
from pathlib import Path

from pydantic import ValidationError

from reverie.media.files.appended_file import create_file
from reverie.media.files.fragmented_mp4 import Recorded
from reverie.media.files.mp4_survey import survey
from reverie.sessions.recording.recording import ID_PATTERN, Entry

logger = logging.getLogger(__name__)

VIDEO, EVENTS, ENTRY = ".mp4", ".jsonl", ".json"


def input_suffix(number: int) -> str:
    """Return the suffix of the file of an input stream; the first is number 0."""
    return f".input-{number + 1}.mp4" if number else ".input.mp4"


class RecordingFolder:
    """Files by the id of their recording."""

    def __init__(self, folder: Path | None) -> None:
        """Use a folder, or a private one (None) that is made with the first recording.

        Raises:
            OSError: it cannot be made, or cannot be written to.
        """
        self._private = folder is None
        name = f"reverie-{secrets.token_hex(8)}"
        self._path = Path(tempfile.gettempdir()) / name if folder is None else folder
        if folder is not None:
            self._make()
            if not os.access(self._path, os.W_OK | os.X_OK):
                raise PermissionError(f"recordings cannot be written to {self._path}")

    def file(self, recording: str, suffix: str) -> Path:
        """Return the path of a recording's file, which need not exist."""
        assert re.fullmatch(ID_PATTERN, recording), (
            "ids are made here, and checked where they come in"
        )
        return self._path / f"{recording}{suffix}"

    def create(self, path: Path) -> int:
        """Return a descriptor to append to a new file of the folder.

        Raises:
            OSError: it exists already, or cannot be made.
        """
        if self._private:
            self._make()
        return create_file(path)

    def write(self, entry: Entry) -> None:
        """Write the entry of a recording, atomically.

        Raises:
            OSError: it cannot be written.
        """
        if self._private:
            self._make()
        path = self.file(entry.recording.id, ENTRY)
        temporary = path.with_suffix(".new")
        descriptor = os.open(
            temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600
        )
        with os.fdopen(descriptor, "w") as file:
            file.write(entry.model_dump_json())
        temporary.replace(path)

    def delete(self, recording: str) -> None:
        """Delete the files of a recording; missing ones are not an error."""
        inputs = self._path.glob(f"{self.file(recording, '').name}.input*.mp4")
        for path in (
            *(self.file(recording, suffix) for suffix in (VIDEO, EVENTS, ENTRY, ".new")),
            *inputs,
        ):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()

    def read_all(self) -> list[Entry]:
        """Return the entries that an earlier server left, oldest first.

        A recording that it was writing when it was lost ends with its last whole fragment.
        """
        entries = []
        for path in self._path.glob(f"*{ENTRY}"):
            if not re.fullmatch(ID_PATTERN, path.stem) or path.is_symlink():
                continue
            try:
                entry = Entry.model_validate_json(path.read_text())
                entries.append(self._repaired(entry) if _was_lost(entry) else entry)
            except (OSError, ValidationError) as error:
                logger.warning("recording %s cannot be read: %s", path.stem, error)
        return sorted(entries, key=lambda entry: entry.recording.started_s)

    def mend(self, recording: str, suffix: str = VIDEO) -> Recorded:
        """End a video with its last whole fragment; return what it holds, which may be nothing.

        Raises:
            OSError: it cannot be done.
        """
        try:
            with self.file(recording, suffix).open("r+b") as file:
                found = survey(file)
                file.truncate(found.size_bytes)
                return found
        except FileNotFoundError:
            return Recorded()

    def remove_if_private(self) -> None:
        """Delete a private folder, with all that is in it."""
        if self._private:
            shutil.rmtree(self._path, ignore_errors=True)

    def _make(self) -> None:
        self._path.mkdir(parents=True, exist_ok=True, mode=0o700)

    def _repaired(self, entry: Entry) -> Entry:
        recording = entry.recording.id
        found = self.mend(recording)
        inputs = tuple(
            each.model_copy(update={"frames": self.mend(recording, input_suffix(number)).frames})
            for number, each in enumerate(entry.recording.inputs)
        )
        known = entry.recording.model_copy(
            update={
                "state": "complete" if found.frames else "failed",
                "reason": "server_lost",
                "frames": found.frames,
                "duration_us": found.duration_us,
                "size_bytes": found.size_bytes,
                "inputs": inputs,
            }
        )
        mended = entry.model_copy(update={"recording": known})
        self.write(mended)
        return mended


def _was_lost(entry: Entry) -> bool:
    return entry.recording.state == "running"
