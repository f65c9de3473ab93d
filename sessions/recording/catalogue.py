"""Which recordings there are, their owners, and which must be deleted. Pure: no file, no clock."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from reverie.media.files.fragmented_mp4 import Recorded
from reverie.sessions.attachments.attachment import Role
from reverie.sessions.recording.options import RecordingOptions
from reverie.sessions.recording.recording import Entry, Progress, RecordedInput, Recording


class RecordingCatalogue:
    """Entries by id, oldest first, and the size of each on the disk."""

    def __init__(self, options: RecordingOptions) -> None:
        self._options = options
        self._entries: dict[str, Entry] = {}
        self._bytes: dict[str, int] = {}
        self._addresses: dict[str, str] = {}

    def __contains__(self, id: str) -> bool:
        return id in self._entries

    def enter(self, entry: Entry, address: str = "") -> None:
        """Add the newest.

        Args:
            entry: the recording with its keys.
            address: the network address that started it; empty: it does not count. In memory only.
        """
        if address:
            self._addresses[entry.recording.id] = address
        self._entries[entry.recording.id] = entry
        self._bytes[entry.recording.id] = entry.recording.size_bytes

    def remove(self, id: str) -> bool:
        """Remove one; return whether it was there."""
        self._bytes.pop(id, None)
        self._addresses.pop(id, None)
        return self._entries.pop(id, None) is not None

    def entry(self, id: str) -> Entry | None:
        """Return a recording with its keys."""
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
        inputs: tuple[RecordedInput, ...] = (),
    ) -> Recording | None:
        """Note the progress of a recording; None when it was deleted.

        Args:
            id: the recording.
            recorded: what its video holds.
            from_us: media time at which it begins; -1 before its first frame.
            size_bytes: of all its files.
            state: its new state.
            reason: why it ended.
            inputs: the recorded input streams.
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
                "inputs": inputs,
            }
        )
        self._entries[id] = entry.model_copy(update={"recording": recording})
        return recording

    def limit_reached(self, address: str) -> str | None:
        """Return the setting that forbids one more recording of an address; None when none does.

        Owners are not limited here, because their own oldest recordings are deleted.
        """
        options = self._options
        if self._is_full(list(self._entries), options.keep_count, options.keep_bytes):
            full = len(self._entries) >= options.keep_count
            return "keep_count" if full else "keep_bytes"
        theirs = [id for id, entered in self._addresses.items() if address and entered == address]
        count, size = options.keep_count_per_address, options.keep_bytes_per_address
        if self._is_full(theirs, count, size):
            return "keep_count_per_address" if len(theirs) >= count else "keep_bytes_per_address"
        return None

    def oldest_of(self, owner: str, running: Collection[str], address: str = "") -> str | None:
        """Return an owner's oldest complete recording, only from `address` if one is given."""
        for id, entry in self._entries.items():
            here = not address or self._addresses.get(id) == address
            if entry.keys.owner == owner and id not in running and here:
                return id
        return None

    def to_let_go(self, now_s: float, running: Collection[str]) -> list[str]:
        """Return those to delete: too old ones, and the oldest of an owner over a limit.

        When all together are over a limit, recordings of owners who are recording go first; when
        no owner is, as after a restart with lower limits, the oldest of all.
        """
        options, owners = self._options, self._owners()
        gone = {
            id
            for id, entry in self._entries.items()
            if id not in running and now_s - entry.recording.started_s > options.keep_s
        }
        count, size = options.keep_count_per_owner, options.keep_bytes_per_owner
        for owner in set(owners.values()):
            theirs = [id for id in owners if owners[id] == owner and id not in gone]
            gone |= self._beyond(theirs, [id for id in theirs if id not in running], count, size)
        rest = [id for id in owners if id not in gone]
        causes = {owners[id] for id in rest if id in running} or set(owners.values())
        may_go = [id for id in rest if id not in running and owners[id] in causes]
        gone |= self._beyond(rest, may_go, options.keep_count, options.keep_bytes)
        return [id for id in self._entries if id in gone]

    def to_stop(self, running: Collection[str]) -> dict[str, str]:
        """Return the running ones that must end, each with the setting that it exceeds."""
        options, owners = self._options, self._owners()
        sizes, of_addresses = Counter[str](), Counter[str]()
        for id, size in self._bytes.items():
            sizes[owners[id]] += size
            of_addresses[self._addresses.get(id, "")] += size
        ends: dict[str, str] = {}
        here = [id for id in self._entries if id in running]
        for id in here:
            address = self._addresses.get(id, "")
            if sizes[owners[id]] > options.keep_bytes_per_owner:
                ends[id] = "keep_bytes_per_owner"
            elif address and of_addresses[address] > options.keep_bytes_per_address:
                ends[id] = "keep_bytes_per_address"
        if here and self.is_too_much:
            most = max(here, key=lambda id: sizes[owners[id]])
            ends |= {id: "keep_bytes" for id in here if owners[id] == owners[most]}
        return ends

    @property
    def is_too_much(self) -> bool:
        """Whether all together are over a limit."""
        options = self._options
        full = sum(self._bytes.values()) > options.keep_bytes
        return full or len(self._entries) > options.keep_count

    def _owners(self) -> dict[str, str]:
        return {id: entry.keys.owner for id, entry in self._entries.items()}

    def _is_full(self, ids: Sequence[str], count: int, size: int) -> bool:
        return len(ids) >= count or sum(self._bytes[id] for id in ids) >= size

    def _beyond(self, ids: Sequence[str], may_go: Sequence[str], count: int, size: int) -> set[str]:
        """Return the oldest of `may_go`, until the rest of `ids` is within the limits."""
        left, total, gone = len(ids), sum(self._bytes[id] for id in ids), set[str]()
        for id in may_go:
            if left <= count and total <= size:
                break
            gone.add(id)
            left, total = left - 1, total - self._bytes[id]
        return gone

    def _entries_of(self, session: str) -> Iterator[Entry]:
        return (each for each in self._entries.values() if each.recording.session == session)
