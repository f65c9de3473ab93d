"""Recording sessions: over the real pool, with the stub model, whose frames say what they are."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import stub_model
from projection import number_of, picture, played
from session_suite import LIMIT_S, looking
from stub_model import read_stamp

from reverie.config import Deployment
from reverie.gpu_pool.wire.options import ModelOptions, PoolOptions
from reverie.host import Engine
from reverie.media import Codec
from reverie.sessions import CommandError, LocalSession, Role
from reverie.sessions.protocol.events import AnyEvent, ArtifactCompleted, ArtifactCreated
from reverie.sessions.recording.folder import EVENTS, VIDEO, input_suffix
from reverie.sessions.recording.options import RecordingOptions
from reverie.sessions.recording.recording import Recording
from reverie.sessions.recording.recordings import Recordings


@asynccontextmanager
async def engine(folder: Path | None = None, **options: float) -> AsyncIterator[Engine]:
    models = (ModelOptions(name="stub", family=stub_model.LOCATION, sessions=2),)
    deployment = Deployment(
        pool=PoolOptions(mode="inline", models=models),
        recordings=RecordingOptions.model_validate({"folder": folder, **options}),
    )
    async with Engine.from_deployment(deployment) as running:
        yield running


def library(running: Engine) -> Recordings:
    recordings = running.store.recordings
    assert recordings is not None
    return recordings


async def over(running: Engine, session: str, is_over: Callable[[Recording], object]) -> Recording:
    """Wait until the newest recording of a session is as wanted."""
    async with asyncio.timeout(LIMIT_S):
        while True:
            found = library(running).list(session)
            if found and is_over(found[-1]):
                return found[-1]
            await asyncio.sleep(0.005)


async def complete(running: Engine, session: str) -> Recording:
    return await over(running, session, lambda recording: recording.state != "running")


def stamps_of(running: Engine, recording: Recording) -> list[tuple[int, int]]:
    shown = played(library(running).file(recording, VIDEO).read_bytes())
    stamps = [read_stamp(picture) for picture in shown.pictures]
    return [(stamp.chunk, stamp.frame) for stamp in stamps]


def lines_of(running: Engine, recording: Recording) -> list[dict[str, object]]:
    text = library(running).file(recording, EVENTS).read_text()
    return [json.loads(line) for line in text.splitlines()]


async def test_what_was_shown_plays_back_with_its_commands_and_events(tmp_path: Path) -> None:
    async with engine(tmp_path) as running, running.session() as session:
        async with looking(session) as screen:
            await screen.chunk()
            await session.record_start()
            for _ in range(4):
                await screen.chunk()
            said = await session.push_text("a frozen lake")
            for _ in range(4):
                await screen.chunk()
            await session.record_stop()
            done = await screen.until("artifact.completed")
        recording = await complete(running, session.id)
        stamps = stamps_of(running, recording)
        lines = lines_of(running, recording)
    assert isinstance(done, ArtifactCompleted)
    assert (recording.state, recording.reason) == ("complete", "stopped")
    assert recording.frames == done.frames == len(stamps) > 40
    numbers = [chunk * 12 + frame for chunk, frame in stamps]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert abs(recording.duration_us - len(stamps) / 24 * 1e6) < 100
    assert recording.left_out == 0
    kinds = [next(iter(set(line) - {"at_us"})) for line in lines]
    assert {"event", "command"} == set(kinds)
    receipts = [line["event"] for line in lines if "event" in line]
    applied = [each for each in receipts if each["type"] == "control.applied"]  # type: ignore[index]
    assert [each["control"] for each in applied] == [said]  # type: ignore[index]
    times = [int(str(line["at_us"])) for line in lines]
    assert times == sorted(times)


async def test_an_interrupt_leaves_a_recording_whose_times_continue(tmp_path: Path) -> None:
    async with engine(tmp_path) as running, running.session() as session:
        async with looking(session) as screen:
            await session.record_start()
            for _ in range(3):
                await screen.chunk()
                await session.interrupt()
                await screen.chunk()
            await session.rewind(0)
            await screen.chunk()
            await session.reset()
            await screen.chunk()
            await session.record_stop()
        recording = await complete(running, session.id)
        shown = played(library(running).file(recording, VIDEO).read_bytes())
    assert len(shown.pictures) == recording.frames
    assert all(
        after > before for before, after in zip(shown.pts_us, shown.pts_us[1:], strict=False)
    )
    for shot in shown.pictures:
        read_stamp(shot)  # none is torn


async def test_the_end_of_the_session_ends_its_recording_which_stays(tmp_path: Path) -> None:
    async with engine(tmp_path) as running:
        async with running.session() as session, looking(session) as screen:
            await session.record_start()
            for _ in range(3):
                await screen.chunk()
        recording = await complete(running, session.id)
        assert (recording.state, recording.reason) == ("complete", "session_over")
        assert len(stamps_of(running, recording)) == recording.frames > 0


async def test_a_client_of_bare_pixels_has_clips_from_its_first_request_on(tmp_path: Path) -> None:
    async with engine(tmp_path) as running, running.session() as session:
        async with looking(session) as screen:
            await screen.chunk()
            with pytest.raises(CommandError, match="kept from now on"):
                await session.clip(1)
            for _ in range(4):
                await screen.chunk()
            await session.clip(1)
            made = await screen.until("artifact.completed")
        assert isinstance(made, ArtifactCompleted)
        assert made.duration_us > 0


async def test_a_clip_holds_the_last_seconds(tmp_path: Path) -> None:
    async with engine(tmp_path, clip_s=10.0) as running, running.session() as session:
        server_session = running.store.get(session.id)
        viewer = LocalSession(server_session, Role.VIEWER, Codec.JPEG)
        async with viewer, looking(session) as screen:
            for _ in range(12):
                await screen.chunk()
            await session.clip(2.0)
            events: list[AnyEvent] = [await screen.until("artifact.completed")]
        recording = await complete(running, session.id)
        stamps = stamps_of(running, recording)
    assert (recording.kind, recording.reason) == ("clip", "clipped")
    assert isinstance(events[0], ArtifactCompleted)
    assert 2_000_000 <= recording.duration_us <= 4_100_000
    numbers = [chunk * 12 + frame for chunk, frame in stamps]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


@pytest.mark.parametrize(
    ("command", "code"),
    [("record_stop", "not_recording"), ("clip", "nothing_to_record")],
)
async def test_what_cannot_be_is_refused(command: str, code: str) -> None:
    async with engine() as running, running.session() as session:
        with pytest.raises(CommandError) as refused:
            await session._command(command)
        assert refused.value.code == code


async def test_a_session_is_recorded_once_at_a_time_and_says_that_it_is() -> None:
    async with engine() as running, running.session() as session, looking(session) as screen:
        await session.record_start()
        created = await screen.until("artifact.created")
        assert isinstance(created, ArtifactCreated)
        with pytest.raises(CommandError) as refused:
            await session.record_start()
        assert refused.value.code == "already_recording"
        assert session.view.recording == created.name
        await session.record_stop()
        assert session.view.recording is None
        await session.record_start()
        await screen.chunk()


async def test_where_it_is_not_enabled_nothing_is_recorded() -> None:
    async with engine(enabled=False) as running, running.session() as session:
        with pytest.raises(CommandError) as refused:
            await session.record_start()
        assert refused.value.code == "not_enabled"


async def test_a_disk_that_fails_is_told_and_the_session_continues(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    async with engine(folder) as running, running.session() as session:
        folder.rmdir()
        async with looking(session) as screen:
            await session.record_start()
            error = await screen.until("error")
            done = await screen.until("artifact.completed")
            await screen.chunk()
            await screen.chunk()
        assert isinstance(done, ArtifactCompleted)
        assert (error.type, done.reason) == ("error", "write_failed")
        assert session.view.recording is None
        assert library(running).list(session.id)[0].state == "failed"


async def test_a_recording_ends_by_itself_when_it_is_long_enough(tmp_path: Path) -> None:
    async with engine(tmp_path, longest_s=2.0) as running, running.session() as session:
        async with looking(session) as screen:
            await session.record_start()
            done = await screen.until("artifact.completed")
            await screen.chunk()
        assert isinstance(done, ArtifactCompleted)
        assert done.reason == "longest_s"
        assert 2_000_000 <= done.duration_us < 4_000_000


async def test_a_private_folder_goes_with_the_server() -> None:
    async with AsyncExitStack() as exits:
        running = await exits.enter_async_context(engine())
        session = await exits.enter_async_context(running.session())
        async with looking(session) as screen:
            await session.record_start()
            for _ in range(3):
                await screen.chunk()
        file = library(running).file(library(running).list(session.id)[0], VIDEO)
    assert not file.parent.exists()


async def test_what_goes_in_is_recorded_too_when_that_is_asked_for_each_stream_apart(
    tmp_path: Path,
) -> None:
    pool = PoolOptions(mode="inline", models=(ModelOptions(name="echo"),))
    deployment = Deployment(pool=pool, recordings=RecordingOptions(folder=tmp_path))
    async with Engine.from_deployment(deployment) as running, running.session() as session:
        async with looking(session) as screen:
            await session.record_start(inputs=True)
            for number in range(20):
                await session.push_video(picture(number, 256, 256), stream="camera")
                await screen.until("media.chunk")
            for number in range(6):
                await session.push_image(picture(number, 256, 256), stream="clip")
                await screen.until("media.chunk")
            await session.record_stop()
        recording = await complete(running, session.id)
        files = [library(running).file(recording, input_suffix(number)) for number in range(2)]
        camera, clip = (played(file.read_bytes()) for file in files)
        library(running).delete(recording.id)
    assert [each.stream for each in recording.inputs] == ["camera", "clip"]
    assert [each.frames for each in recording.inputs] == [len(camera.pictures), len(clip.pictures)]
    numbers = [number_of(each) for each in camera.pictures]
    assert len(numbers) > 10
    assert numbers == sorted(numbers)
    assert [number_of(each) for each in clip.pictures] == list(range(6))
    assert camera.pts_us == sorted(camera.pts_us)
    assert recording.frames > 0
    assert os.listdir(tmp_path) == [], "deleted with the recording"


def test_a_recording_of_an_earlier_server_is_read_with_its_one_input() -> None:
    known = {
        "id": "0" * 24, "session": "s", "kind": "recording", "model": "echo", "program": "",
        "seed": 1, "started_s": 1.0,
    }  # fmt: skip
    one = Recording.model_validate({**known, "input": "camera", "input_frames": 7})
    assert [(each.stream, each.frames) for each in one.inputs] == [("camera", 7)]
    assert Recording.model_validate({**known, "input": None, "input_frames": 0}).inputs == ()


async def test_a_program_that_takes_no_pictures_has_none_to_record() -> None:
    async with engine() as running, running.session() as session:
        with pytest.raises(CommandError) as refused:
            await session.record_start(inputs=True)
        assert (refused.value.code, refused.value.field) == ("nothing_to_record", "inputs")
        assert session.view.recording is None
