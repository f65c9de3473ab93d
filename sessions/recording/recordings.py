"""All recordings of a server: their files, who may fetch them, and when they are deleted.

A recording is three files named by an id that this server makes: `.mp4` (pictures and sound),
`.jsonl` (commands and events, a line each) and `.json` (the entry, with hashes of the secrets that
open it, so that it outlives its session and, in a named folder, the server). No name that a client
sends ever becomes part of a path.

One thread does all file work. `run` is a child of the server's task group.
"""

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from reverie.media import FormatError
from reverie.media.files.appended_file import AppendedFile
from reverie.media.files.fragmented_mp4 import Recorded
from reverie.media.files.replay import Group, make_clip
from reverie.media.job_thread import JobThread
from reverie.sessions.attachments.attachment import Role
from reverie.sessions.protocol.errors import CommandError, ErrorCode, RecordingsError
from reverie.sessions.recording.catalogue import RecordingCatalogue
from reverie.sessions.recording.folder import EVENTS, VIDEO, RecordingFolder, input_suffix
from reverie.sessions.recording.input_recording_writer import InputRecordingWriter
from reverie.sessions.recording.options import RecordingOptions
from reverie.sessions.recording.recording import Entry, Keys, Progress, RecordedInput, Recording
from reverie.sessions.recording.recording_writer import RecordingEnds, RecordingWriter

logger = logging.getLogger(__name__)

SWEEP_S = 30.0
"""How often at least old recordings are looked for."""

JOB_S = 60.0
"""Time for the disk to take a job; after that the job is given up."""

LEAVE_S = 5.0
"""Time for all remaining jobs, once the server is shutting down."""

FULL_S = 60.0
"""When to try again after a refusal for lack of room."""

FAILURES = frozenset({"disk_full", "disk_slow", "write_failed", "bad_format"})
"""Reasons that are failures."""

T = TypeVar("T")
Told = Callable[[Recording], None]
"""Is told the progress of a recording, and last its end; on the event loop."""


class Recordings:
    """For one event loop. Only `start`, `run` and `close` wait for the disk."""

    def __init__(self, options: RecordingOptions, wall_s: Callable[[], float] = time.time) -> None:
        """Touch no file yet: `start` does.

        Args:
            wall_s: seconds since 1970; tests replace it.
        """
        self.options = options
        self._wall_s = wall_s
        self._folder: RecordingFolder | None = None
        self._catalogue = RecordingCatalogue(options)
        self._writers: dict[str, RecordingWriter] = {}  # those that run
        self._told: dict[str, Told] = {}  # of those that are not complete
        self._jobs: asyncio.Queue[Callable[[], Awaitable[None]] | None] = asyncio.Queue()
        self._leave_by_s: float | None = (
            None  # when all jobs must be done, once the server is shutting down
        )
        self._news = asyncio.Event()  # a recording has ended, or was deleted
        self._thread = JobThread("recordings")

    # --- running ---

    async def start(self) -> None:
        """Open the folder and read its entries.

        Where recording is not enabled, only recordings of an earlier server are kept up.

        Raises:
            RecordingsError: it cannot be used.
        """
        if not self.options.enabled and not await self._in_thread(self._has_leftovers):
            return
        try:
            self._folder = await self._in_thread(lambda: RecordingFolder(self.options.folder))
        except OSError as error:
            without = "recordings.enabled: false runs without it"
            raise RecordingsError(
                f"recordings.folder cannot be used: {error}; {without}"
            ) from error
        for entry in await self._in_thread(self._folder.read_all):
            self._catalogue.enter(entry)

    async def run(self) -> None:
        """Finish recordings that have ended and delete old ones, until `leave`."""
        while True:
            try:
                async with asyncio.timeout(SWEEP_S):
                    job = await self._jobs.get()
            except TimeoutError:
                self._sweep()
                continue
            if job is None:
                return
            await self._do(job)
            self._sweep()

    def leave(self) -> None:
        """End running recordings, and `run` once they are finished, or after a limit."""
        self._leave_by_s = asyncio.get_running_loop().time() + LEAVE_S
        for writer in tuple(self._writers.values()):
            writer.stop("shutdown")
        self._jobs.put_nowait(None)

    async def close(self) -> None:
        """Close the folder, and delete a private one. `run` has ended."""
        if self._folder is not None:
            try:
                async with asyncio.timeout(LEAVE_S):
                    await self._in_thread(self._folder.remove_if_private)
            except TimeoutError:
                logger.error("the disk does not answer; the folder of recordings is left as it is")
        self._thread.shutdown(wait=False)

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
            oldest = self._catalogue.oldest_of(keys.owner, self._told, here)
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
        told: Told,
        address: str = "",
    ) -> RecordingWriter:
        """Begin a recording; it runs until its writer is stopped."""
        id = recording.id
        self._enter(Entry(recording=recording, keys=keys), told, address)
        ends = RecordingEnds(
            grew=lambda: self._grew(id),
            over=lambda reason: self._jobs.put_nowait(lambda: self._finish(id, reason)),
        )
        video, lines = (self._new_file(id, suffix) for suffix in (VIDEO, EVENTS))
        inputs = {
            each.stream: InputRecordingWriter(
                self._new_file(id, input_suffix(number)), self._thread, _monotonic_us
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
        told: Told,
        address: str = "",
    ) -> None:
        """Make a clip of groups, one or more, and keep it like a recording."""
        self._enter(Entry(recording=clip, keys=keys), told, address)
        self._jobs.put_nowait(lambda: self._make_clip(clip.id, groups, sounds))

    def stop(self, id: str) -> None:
        """End a recording, if it runs."""
        if id in self._writers:
            self._writers[id].stop("stopped")

    async def completed(self, recording: Recording) -> Recording:
        """Wait until a recording is complete; return it as it is then. Safe to cancel."""
        while (entry := self._catalogue.entry(recording.id)) is not None:
            if entry.recording.state != "running":
                return entry.recording
            self._news.clear()
            await self._news.wait()
        return recording.model_copy(update={"state": "complete", "reason": "deleted"})

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
        return self._opened.file(recording.id, suffix)

    def delete(self, id: str) -> None:
        """Delete a recording, which ends first if it runs; idempotent."""
        if id in self._writers:
            self._writers[id].stop("deleted")
            self._note(id, self._writers[id], "complete", "deleted")
        self._told.pop(id, None)
        if self._catalogue.remove(id):
            self._news.set()
            folder = self._opened
            self._jobs.put_nowait(lambda: self._in_thread(lambda: folder.delete(id)))

    # --- inside ---

    @property
    def _opened(self) -> RecordingFolder:
        assert self._folder is not None, "recordings are started before they are used"
        return self._folder

    def _has_leftovers(self) -> bool:
        folder = self.options.folder
        return folder is not None and folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)

    def _enter(self, entry: Entry, told: Told, address: str) -> None:
        self._catalogue.enter(entry, address)
        self._told[entry.recording.id] = told
        self._jobs.put_nowait(lambda: self._write(entry))

    def _new_file(self, id: str, suffix: str) -> AppendedFile:
        def failed(reason: str) -> None:
            if id in self._writers:
                self._writers[id].stop(reason)

        folder = self._opened
        path = folder.file(id, suffix)
        return AppendedFile(path, self._thread, failed, open_file=folder.create)

    def _grew(self, id: str) -> None:
        self._note(id, self._writers[id])
        self._sweep()

    async def _finish(self, id: str, reason: str) -> None:
        writer, recorded = self._writers[id], self._writers[id].recorded
        failure = await writer.finish()
        del self._writers[id]
        if failure is not None and id in self._catalogue:
            folder = self._opened  # a video must end with a whole fragment to be playable
            recorded = await self._in_thread(lambda: folder.mend(id))
        failed = failure is not None and not recorded.frames
        state: Progress = "failed" if failed else "complete"
        self._note(id, writer, state, failure or reason, recorded)
        await self._over(id)

    def _note(
        self,
        id: str,
        writer: RecordingWriter,
        state: Progress = "running",
        reason: str = "",
        recorded: Recorded | None = None,
    ) -> None:
        """Note the progress of a recording, and tell it."""
        from_us = -1 if writer.from_us is None else writer.from_us
        inputs = tuple(
            RecordedInput(stream=stream, frames=each.frames, left_out=each.left_out)
            for stream, each in writer.inputs.items()
        )
        held = recorded or writer.recorded
        changed = self._catalogue.change(
            id, held, from_us, writer.size_bytes, state, reason, inputs=inputs
        )
        if changed is not None and id in self._told:
            self._told[id](changed)

    async def _make_clip(
        self, id: str, groups: Sequence[Group], sounds: Sequence[tuple[str, int]]
    ) -> None:
        failures: list[str] = []
        recorded, from_us = Recorded(), -1
        try:
            clip = await self._in_thread(lambda: make_clip(groups, sounds))
        except FormatError:
            failures.append("bad_format")
        else:
            recorded, from_us = clip.recorded, clip.from_us
            folder = self._opened
            path, size = folder.file(id, VIDEO), len(clip.data)
            file = AppendedFile(path, self._thread, failures.append, size, open_file=folder.create)
            file.append(clip.data)
            await file.close()
        state: Progress = "failed" if failures else "complete"
        reason = failures[0] if failures else "clipped"
        size_bytes = recorded.size_bytes
        changed = self._catalogue.change(id, recorded, from_us, size_bytes, state, reason)
        if changed is not None and id in self._told:
            self._told[id](changed)
        await self._over(id)

    async def _over(self, id: str) -> None:
        self._told.pop(id, None)
        entry = self._catalogue.entry(id)
        if entry is not None:  # else it was deleted
            await self._write(entry)
        self._news.set()

    async def _do(self, job: Callable[[], Awaitable[None]]) -> None:
        limit_s = JOB_S
        if self._leave_by_s is not None:
            limit_s = max(0.0, self._leave_by_s - asyncio.get_running_loop().time())
        try:
            async with asyncio.timeout(limit_s):
                await job()
        except TimeoutError:
            logger.error("a recording's files took over %g s", limit_s)
        except Exception:
            # The boundary of housekeeping: a failure with one recording must not end the server.
            logger.exception("a job for a recording failed")

    async def _write(self, entry: Entry) -> None:
        folder = self._opened
        try:
            await self._in_thread(lambda: folder.write(entry))
        except OSError as error:
            logger.warning(
                "the entry of recording %s cannot be written: %s", entry.recording.id, error
            )

    def _sweep(self) -> None:
        """Delete old recordings and the oldest over a limit; stop running ones last."""
        for id in self._catalogue.to_let_go(self._wall_s(), self._told):
            self.delete(id)
        for id, reason in self._catalogue.to_stop(self._writers).items():
            self._writers[id].stop(reason)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _monotonic_us() -> int:
    return time.monotonic_ns() // 1000
