"""How long recordings are kept, and which outlive a server."""

import asyncio
import os
import tempfile
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from projection import Camera, played
from waiting import until

from reverie.sessions.attachments.attachment import Role
from reverie.sessions.protocol.errors import CommandError, RecordingsError
from reverie.sessions.recording.folder import ENTRY, EVENTS, VIDEO, RecordingFolder
from reverie.sessions.recording.options import RecordingOptions
from reverie.sessions.recording.recording import Keys, Recording, new_id
from reverie.sessions.recording.recording_writer import RecordingWriter
from reverie.sessions.recording.recordings import Recordings

LIMIT_S = 20.0
KEYS = Keys.of("the token", "the watch token", "the owner")


@dataclass
class RecordingsRig:
    """A library on a clock that tests own.

    Attributes:
        told: every word of any recording, oldest first.
    """

    recordings: Recordings
    now_s: float = 1_000_000.0
    told: list[Recording] = field(default_factory=list)

    def begin(
        self, session: str = "s", keys: Keys = KEYS, address: str = ""
    ) -> tuple[str, RecordingWriter]:
        recording = Recording(
            id=new_id(),
            session=session,
            kind="recording",
            model="m",
            program="p",
            seed=7,
            started_s=self.now_s,
        )
        self.recordings.make_room(keys, address)
        writer = self.recordings.begin(recording, keys, (), self.told.append, address)
        return recording.id, writer

    async def record(
        self, frames: int = 30, session: str = "s", keys: Keys = KEYS, address: str = ""
    ) -> str:
        """Record some frames, and wait until the recording is whole."""
        id, writer = self.begin(session, keys, address)
        for media in Camera().film(frames):
            writer.picture(media)
        writer.stop("stopped")
        await until(lambda: bool(self.told) and self.told[-1].state != "running")
        return id

    @property
    def ids(self) -> list[str]:
        return [each.id for each in self.recordings.list("s")]


@asynccontextmanager
async def recordings_rig(folder: Path | None, **options: Any) -> AsyncIterator[RecordingsRig]:
    made: RecordingsRig
    recordings = Recordings(
        RecordingOptions.model_validate({"folder": folder, **options}), lambda: made.now_s
    )
    made = RecordingsRig(recordings)
    await recordings.start()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(recordings.run())
        yield made
        recordings.leave()
    await recordings.close()


def files(folder: Path) -> set[str]:
    return set(os.listdir(folder))


async def test_what_is_recorded_is_there_for_those_with_its_keys(tmp_path: Path) -> None:
    async with recordings_rig(tmp_path) as on:
        id = await on.record(50)
        recording = on.recordings.get("s", id)
        assert recording is not None
        assert (recording.frames, recording.duration_us) == (50, 2_500_000)
        assert recording.size_bytes == on.recordings.file(recording, VIDEO).stat().st_size
        roles = [on.recordings.role("s", each) for each in ("the token", "the watch token", "x")]
        assert roles == [Role.DRIVER, Role.VIEWER, None]
        assert on.recordings.role("s", "the owner") is Role.DRIVER
        assert on.recordings.role("other", "the token") is None
        assert on.recordings.get("other", id) is None
    assert files(tmp_path) == {f"{id}{suffix}" for suffix in (VIDEO, ENTRY)}
    assert "the token" not in (tmp_path / f"{id}{ENTRY}").read_text()


async def test_what_is_too_old_goes(tmp_path: Path) -> None:
    async with recordings_rig(tmp_path, keep_s=100.0) as on:
        old = await on.record()
        on.now_s += 60
        new = await on.record()
        on.now_s += 60
        id, writer = on.begin()
        assert on.ids == [new, id]
        writer.stop("stopped")
        await until(lambda: f"{old}{VIDEO}" not in files(tmp_path))
    assert not any(name.startswith(old) for name in files(tmp_path))


async def test_of_too_many_the_oldest_goes(tmp_path: Path) -> None:
    async with recordings_rig(tmp_path, keep_count=2) as on:
        ids = [await on.record() for _ in range(4)]
        assert on.ids == ids[2:]


OTHER_OWNER = Keys.of("another token", "another watch token", "another owner")


async def test_an_owner_who_records_without_end_loses_their_own_oldest(tmp_path: Path) -> None:
    async with recordings_rig(tmp_path, keep_count=4, keep_count_per_owner=2) as on:
        victim = await on.record()
        made = [await on.record(5, "t", OTHER_OWNER) for _ in range(5)]
        assert on.ids == [victim]
        assert [each.id for each in on.recordings.list("t")] == made[-2:]


async def test_when_all_room_is_taken_others_are_refused_and_lose_nothing(tmp_path: Path) -> None:
    async with recordings_rig(tmp_path, keep_count=3, keep_count_per_owner=2) as on:
        victim = await on.record()
        made = [await on.record(5, "t", OTHER_OWNER) for _ in range(2)]
        third = Keys.of("x", "y", "a third")
        with pytest.raises(CommandError, match="keep_count") as refused:
            on.begin("u", third)
        assert (refused.value.code, refused.value.retry_after_s) == ("too_many", 60.0)
        assert on.ids == [victim]
        assert [each.id for each in on.recordings.list("t")] == made
        newer = await on.record()  # who has one there gives that for it
        assert on.ids == [newer]


async def test_an_address_with_many_owners_has_a_quota_too(tmp_path: Path) -> None:
    async with recordings_rig(tmp_path, keep_count=8, keep_count_per_address=2) as on:
        victim = await on.record(address="here")
        for number in range(2):
            owner = Keys.of(f"t{number}", f"w{number}", f"owner {number}")
            await on.record(5, f"t{number}", owner, "there")
        with pytest.raises(CommandError, match="keep_count_per_address"):
            on.begin("t9", Keys.of("t9", "w9", "owner 9"), "there")
        await on.record(address="here")
        assert victim in on.ids


async def test_of_too_much_the_oldest_goes_and_what_runs_ends_last(tmp_path: Path) -> None:
    async with recordings_rig(tmp_path, keep_bytes=2**20) as on:
        first = await on.record()
        id, writer = on.begin()
        for media in Camera().film(50):
            writer.line("event", f'"{"much " * 10_000}"')
            writer.picture(media)
        await until(lambda: on.told[-1].state == "complete")
        assert first not in on.ids
        assert (on.told[-1].id, on.told[-1].reason) == (id, "keep_bytes")
        kept = on.recordings.get("s", id)
        assert kept is None or played(on.recordings.file(kept, VIDEO).read_bytes()).pictures


async def test_deleting_what_runs_ends_it_and_leaves_nothing(tmp_path: Path) -> None:
    async with recordings_rig(tmp_path) as on:
        id, writer = on.begin()
        for media in Camera().film(60):
            writer.picture(media)
        on.recordings.delete(id)
        on.recordings.delete(id)
        assert (on.told[-1].state, on.told[-1].reason) == ("complete", "deleted")
        assert on.ids == []
        await until(lambda: not files(tmp_path))


async def test_a_server_that_leaves_ends_what_runs(tmp_path: Path) -> None:
    async with recordings_rig(tmp_path) as on:
        id, writer = on.begin()
        for media in Camera().film(30):
            writer.picture(media)
    assert on.told[-1].reason == "shutdown"
    assert len(played((tmp_path / f"{id}{VIDEO}").read_bytes()).pictures) == 30


async def test_what_a_lost_server_was_writing_ends_with_its_last_whole_fragment(
    tmp_path: Path,
) -> None:
    async with recordings_rig(tmp_path) as on:
        whole = await on.record()
        on.now_s += 1
        id, writer = on.begin()
        for media in Camera().film(70):
            writer.picture(media)
        await until(lambda: f"{id}{VIDEO}" in files(tmp_path))
        await until(lambda: f"{id}{ENTRY}" in files(tmp_path))
        await until(lambda: (tmp_path / f"{id}{VIDEO}").stat().st_size > 2000)
        lost = {name: (tmp_path / name).read_bytes() for name in files(tmp_path)}
    elsewhere = tmp_path / "again"
    elsewhere.mkdir()
    for name, data in lost.items():
        cut = data[:-7] if name == f"{id}{VIDEO}" else data
        (elsewhere / name).write_bytes(cut)
    (elsewhere / "not-a-recording.json").write_text("{}")
    (elsewhere / f"{'0' * 24}.json").write_text("no JSON at all")
    async with recordings_rig(elsewhere) as again:
        assert again.ids == [whole, id]
        recording = again.recordings.get("s", id)
        assert recording is not None
        assert (recording.state, recording.reason) == ("complete", "server_lost")
        data = again.recordings.file(recording, VIDEO).read_bytes()
        assert len(played(data).pictures) == recording.frames > 0
        assert recording.size_bytes == len(data)
        assert again.recordings.role("s", "the token") is Role.DRIVER


async def test_lines_are_stored_next_to_the_pictures(tmp_path: Path) -> None:
    async with recordings_rig(tmp_path) as on:
        id, writer = on.begin()
        writer.line("event", '{"before": true}')
        for media in Camera().film(45):
            writer.picture(media)
        writer.line("command", '{"after": true}')
        writer.stop("stopped")
        await until(lambda: on.told[-1].state != "running")
        text = (tmp_path / f"{id}{EVENTS}").read_text()
    assert text == (
        '{"at_us":0,"event":{"before": true}}\n{"at_us":2200000,"command":{"after": true}}\n'
    )


async def test_a_folder_that_cannot_be_used_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    recordings = Recordings(RecordingOptions(folder=tmp_path / "file"))
    with pytest.raises(RecordingsError, match=r"recordings\.folder cannot be used.*enabled: false"):
        await recordings.start()
    await recordings.close()


async def test_where_nothing_is_recorded_no_folder_is_made_or_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere() -> str:
        raise FileNotFoundError("no place can be written to")

    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    (tmp_path / "file").write_text("")
    for folder in (None, tmp_path / "none", tmp_path / "file"):
        async with recordings_rig(folder, enabled=False):
            pass
    assert files(tmp_path) == {"file"}


async def test_what_was_kept_before_recordings_were_switched_off_goes_in_its_time(
    tmp_path: Path,
) -> None:
    async with recordings_rig(tmp_path) as on:
        await on.record()
    assert files(tmp_path)
    async with recordings_rig(tmp_path, enabled=False, keep_s=10) as on:
        on.now_s += 11
        on.recordings._sweep()
    assert not files(tmp_path)


async def test_a_disk_that_hangs_does_not_keep_the_server_from_leaving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for module in ("disk_jobs", "recording_files"):
        monkeypatch.setattr(f"reverie.sessions.recording.{module}.LEAVE_S", 0.05)
    gate = threading.Event()
    monkeypatch.setattr(RecordingFolder, "write", lambda *_: gate.wait(60))
    async with asyncio.timeout(LIMIT_S), recordings_rig(tmp_path) as on:
        on.begin()
    assert "the disk does not answer" in caplog.text
    gate.set()
