"""All recordings of a server: their files, who may fetch them, and when they are deleted.

A recording is three files named by an id that this server makes: `.mp4` (pictures and sound),
`.jsonl` (commands and events, a line each) and `.json` (the entry, with hashes of the secrets that
open it, so that it outlives its session and, in a named folder, the server). No name that a client
sends ever becomes part of a path.

`run` is a child of the server's task group.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from reverie.media.files.replay import Group
from reverie.sessions.attachments.attachment import Role
from reverie.sessions.protocol.errors import CommandError, ErrorCode
from reverie.sessions.recording.catalogue import RecordingCatalogue
from reverie.sessions.recording.disk_jobs import DiskJobs
from reverie.sessions.recording.folder import EVENTS, VIDEO, input_suffix
from reverie.sessions.recording.input_recording_writer import InputRecordingWriter
from reverie.sessions.recording.options import RecordingOptions
from reverie.sessions.recording.recording import Entry, Keys, Progress, Recording
from reverie.sessions.recording.recording_files import RecordingFiles
from reverie.sessions.recording.recording_progress import OnProgress, RecordingProgress
from reverie.sessions.recording.recording_writer import RecordingEnds, RecordingWriter

FULL_S = 60.0
"""When to try again after a refusal for lack of room."""

FAILURES = frozenset({"disk_full", "disk_slow", "write_failed", "bad_format"})
"""Reasons that are failures."""


class Recordings:
    """For one event loop. Only `start`, `run` and `close` wait for the disk."""

    def __init__(self, options: RecordingOptions, wall_s: Callable[[], float] = time.time) -> None:
        """Touch no file yet: `start` does.

        Args:
            wall_s: seconds since 1970; tests replace it.
        """
        self.options = options
        self._wall_s = wall_s
        self._files = RecordingFiles(options)
        self._catalogue = RecordingCatalogue(options)
        self._writers: dict[str, RecordingWriter] = {}  # those that run
        self._progress = RecordingProgress(self._catalogue)
        self._jobs = DiskJobs()

    # --- running ---

    async def start(self) -> None:
        """Open the folder and read its entries.

        Where recording is not enabled, only recordings of an earlier server are kept up.

        Raises:
            RecordingsError: it cannot be used.
        """
        for entry in await self._files.open():
            self._catalogue.enter(entry)

    async def run(self) -> None:
        """Finish recordings that have ended and delete old ones, until `leave`."""
        await self._jobs.run(self._sweep)

    def leave(self) -> None:
        """End running recordings, and `run` once they are finished, or after a limit."""
        self._jobs.limit_rest()
        for writer in tuple(self._writers.values()):
            writer.stop("shutdown")
        self._jobs.end()

    async def close(self) -> None:
        """Close the folder, and delete a private one. `run` has ended."""
        await self._files.close()

    def now_s(self) -> float:
        """Return seconds since 1970."""
        return self._wall_s()

    # --- recording ---

    def make_room(self, keys: Keys, address: str = "") -> None:
        """Make room for another recording by deleting the owner's oldest ones.

        Args:
            keys: of the new recording.
            address: the network address that starts it; empty: it does not count.

        Raises:
            CommandError: there is no room; names the setting.
        """
        while (limit := self._catalogue.limit_reached(address)) is not None:
            here = address if limit.endswith("_per_address") else ""
            oldest = self._catalogue.oldest_of(keys.owner, self._progress.followed, here)
            if oldest is None:
                most = getattr(self.options, limit)
                text = f"there is no room for another recording: at most {most} are kept ({limit})"
                raise CommandError(ErrorCode.TOO_MANY, text, retry_after_s=FULL_S)
            self.delete(oldest)

    def begin(
        self,
        recording: Recording,
        keys: Keys,
        sounds: Sequence[tuple[str, int]],
        on_progress: OnProgress,
        address: str = "",
    ) -> RecordingWriter:
        """Begin a recording; it runs until its writer is stopped."""
        id = recording.id
        self._enter(Entry(recording=recording, keys=keys), on_progress, address)
        ends = RecordingEnds(
            grew=lambda: self._grew(id),
            over=lambda reason: self._jobs.put(lambda: self._finish(id, reason)),
        )

        def failed(reason: str) -> None:
            if id in self._writers:
                self._writers[id].stop(reason)

        video, lines = (self._files.new(id, suffix, failed) for suffix in (VIDEO, EVENTS))
        inputs = {
            each.stream: InputRecordingWriter(
                self._files.new(id, input_suffix(number), failed),
                self._files.thread,
                _monotonic_us,
            )
            for number, each in enumerate(recording.inputs)
        }
        writer = RecordingWriter(
            video, lines, sounds, round(self.options.longest_s * 1e6), ends, inputs
        )
        self._writers[id] = writer
        self._sweep()
        return writer

    def keep_clip(
        self,
        clip: Recording,
        keys: Keys,
        groups: Sequence[Group],
        sounds: Sequence[tuple[str, int]],
        on_progress: OnProgress,
        address: str = "",
    ) -> None:
        """Make a clip of groups, one or more, and keep it like a recording."""
        self._enter(Entry(recording=clip, keys=keys), on_progress, address)
        self._jobs.put(lambda: self._keep_clip(clip.id, groups, sounds))

    def stop(self, id: str) -> None:
        """End a recording, if it runs."""
        if id in self._writers:
            self._writers[id].stop("stopped")

    async def completed(self, recording: Recording) -> Recording:
        """Wait until a recording is complete; return it as it is then. Safe to cancel."""
        return await self._progress.completed(recording)

    # --- finding ---

    def role(self, session: str, secret: str) -> Role | None:
        """Return the most that a secret allows with the recordings of a session, if anything."""
        return self._catalogue.role(session, secret)

    def list(self, session: str) -> list[Recording]:
        """Return the recordings of a session, oldest first."""
        return self._catalogue.of(session)

    def get(self, session: str, id: str) -> Recording | None:
        """Return a recording of a session."""
        return self._catalogue.get(session, id)

    def file(self, recording: Recording, suffix: str) -> Path:
        """Return the path of a recording's file."""
        return self._files.path(recording.id, suffix)

    def delete(self, id: str) -> None:
        """Delete a recording, which ends first if it runs; idempotent."""
        if id in self._writers:
            self._writers[id].stop("deleted")
            self._progress.note(id, self._writers[id], "complete", "deleted")
        self._progress.leave(id)
        if self._catalogue.remove(id):
            self._progress.over()
            self._jobs.put(lambda: self._files.delete(id))

    # --- inside ---

    def _enter(self, entry: Entry, on_progress: OnProgress, address: str) -> None:
        self._catalogue.enter(entry, address)
        self._progress.follow(entry.recording.id, on_progress)
        self._jobs.put(lambda: self._files.write(entry))

    def _grew(self, id: str) -> None:
        self._progress.note(id, self._writers[id])
        self._sweep()

    async def _finish(self, id: str, reason: str) -> None:
        writer, recorded = self._writers[id], self._writers[id].recorded
        failure = await writer.finish()
        del self._writers[id]
        if failure is not None and id in self._catalogue:
            recorded = await self._files.mend(id)
        failed = failure is not None and not recorded.frames
        state: Progress = "failed" if failed else "complete"
        self._progress.note(id, writer, state, failure or reason, recorded)
        await self._over(id)

    async def _keep_clip(
        self, id: str, groups: Sequence[Group], sounds: Sequence[tuple[str, int]]
    ) -> None:
        kept = await self._files.keep_clip(id, groups, sounds)
        state: Progress = "failed" if kept.failure else "complete"
        reason = kept.failure or "clipped"
        size_bytes = kept.recorded.size_bytes
        self._progress.tell(
            self._catalogue.change(id, kept.recorded, kept.from_us, size_bytes, state, reason)
        )
        await self._over(id)

    async def _over(self, id: str) -> None:
        self._progress.leave(id)
        entry = self._catalogue.entry(id)
        if entry is not None:  # else it was deleted
            await self._files.write(entry)
        self._progress.over()

    def _sweep(self) -> None:
        """Delete old recordings and the oldest over a limit; stop running ones last."""
        for id in self._catalogue.to_let_go(self._wall_s(), self._progress.followed):
            self.delete(id)
        for id, reason in self._catalogue.to_stop(self._writers).items():
            self._writers[id].stop(reason)


def _monotonic_us() -> int:
    return time.monotonic_ns() // 1000
