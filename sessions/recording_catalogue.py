"""Which recordings there are, whose they are, and which must go. Pure: no file, no clock."""

from collections.abc import Collection, Iterator

from reverie.media.fragmented_mp4 import Recorded
from reverie.sessions.attachment import Role
from reverie.sessions.recording import Entry, Progress, Recording
from reverie.sessions.recording_options import RecordingOptions


class RecordingCatalogue:
    """Entries by id, oldest first, and how much each takes of the disk."""

    def __init__(self, options: RecordingOptions) -> None:
        self._options = options
        self._entries: dict[str, Entry] = {}
        self._bytes: dict[str, int] = {}

    def __contains__(self, id: str) -> bool:
        return id in self._entries

    def enter(self, entry: Entry) -> None:
        """Add the newest."""
        self._entries[entry.recording.id] = entry
        self._bytes[entry.recording.id] = entry.recording.size_bytes

    def remove(self, id: str) -> bool:
        """Forget one; tell whether it was there."""
        self._bytes.pop(id, None)
        return self._entries.pop(id, None) is not None

    def entry(self, id: str) -> Entry | None:
        """Return one with its keys."""
        return self._entries.get(id)

    def get(self, session: str, id: str) -> Recording | None:
        """Return a recording of a session."""
        entry = self._entries.get(id)
        return entry.recording if entry and entry.recording.session == session else None

    def of(self, session: str) -> list[Recording]:
        """Return the recordings of a session."""
        return [entry.recording for entry in self._entries_of(session)]

    def role(self, session: str, secret: str) -> Role | None:
        """Return the most that a secret allows with the recordings of a session, if anything."""
        roles = (entry.keys.role(secret) for entry in self._entries_of(session))
        return next((role for role in roles if role is not None), None)

    def change(
        self,
        id: str,
        recorded: Recorded,
        from_us: int,
        size_bytes: int,
        state: Progress = "running",
        reason: str = "",
        input_frames: int = 0,
    ) -> Recording | None:
        """Note how far a recording has come; None when it is not there any more.

        Args:
            id: which one.
            recorded: what its video holds.
            from_us: media time at which it begins; -1 before its first frame.
            size_bytes: of all its files.
            state: what has become of it.
            reason: why it is over.
            input_frames: pictures that went in and were recorded.
        """
        entry = self._entries.get(id)
        if entry is None:
            return None
        self._bytes[id] = size_bytes
        recording = entry.recording.model_copy(
            update={
                "state": state,
                "reason": reason,
                "from_us": from_us,
                "frames": recorded.frames,
                "duration_us": recorded.duration_us,
                "size_bytes": recorded.size_bytes,
                "left_out": recorded.left_out,
                "input_frames": input_frames,
            }
        )
        self._entries[id] = entry.model_copy(update={"recording": recording})
        return recording

    def to_let_go(self, now_s: float, running: Collection[str]) -> list[str]:
        """Return those that are too old, and the oldest of too many or too much."""
        options = self._options
        count, size, gone = len(self._entries), sum(self._bytes.values()), []
        for id, entry in self._entries.items():
            if id in running:
                continue
            old = now_s - entry.recording.started_s > options.keep_s
            if old or count > options.keep_count or size > options.keep_bytes:
                gone.append(id)
                count, size = count - 1, size - self._bytes[id]
        return gone

    @property
    def is_too_much(self) -> bool:
        """Whether what is there takes more than it may."""
        options = self._options
        full = sum(self._bytes.values()) > options.keep_bytes
        return full or len(self._entries) > options.keep_count

    def _entries_of(self, session: str) -> Iterator[Entry]:
        return (each for each in self._entries.values() if each.recording.session == session)
