"""What every `Session` must do with pictures and sound that are pushed, with the family `echo`.

Used like `session_suite.SessionSuite`; what is pushed comes out again, so that it can be looked at.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest
from listening import pitch_hz
from moving_pictures import CORNERS, clip_of, corners, file_of, grey, quarters, turned
from numpy.typing import NDArray

from reverie.models.echo import SIDE_PX
from reverie.sessions.client.session import Session
from reverie.sessions.protocol.errors import CommandError
from reverie.sessions.protocol.events import AnyEvent, ControlApplied, ControlSuperseded
from reverie.sessions.protocol.media_events import MediaChunk

ECHO = "reverie.models.echo:Echo"
LIMIT_S = 30.0
"""For anything that a test waits for, on a busy machine."""


class MediaService(Protocol):
    """Something that opens sessions of `echo`."""

    def session(self) -> AbstractAsyncContextManager[Session]:
        """Open a session, and end it with the block."""


class Watcher:
    """Streams a session in a task of its own, so that pushes find room, and keeps all of it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.events: list[AnyEvent] = []
        self.pictures: list[tuple[MediaChunk, NDArray[np.uint8]]] = []
        self.sound: list[NDArray[np.int16]] = []
        self._news = asyncio.Condition()

    async def watch(self) -> None:
        async with aclosing(self.session.stream()) as stream:
            async for event in stream:
                self.events.append(event)
                if isinstance(event, MediaChunk) and event.stream == "video":
                    self.pictures.append((event, self.session.picture(event)))
                if isinstance(event, MediaChunk) and event.stream == "audio":
                    self.sound.append(self.session.samples(event))
                async with self._news:
                    self._news.notify_all()

    async def until(self, condition: Any) -> None:
        """Return once something is so."""
        async with asyncio.timeout(LIMIT_S), self._news:
            await self._news.wait_for(condition)

    async def shown(self, count: int) -> list[NDArray[np.uint8]]:
        """Return the first pictures once there are so many."""
        await self.until(lambda: len(self.pictures) >= count)
        return [picture for _, picture in self.pictures[:count]]

    async def receipt(self, control: str) -> ControlApplied | ControlSuperseded:
        """Return the receipt of a push."""

        def found() -> list[ControlApplied | ControlSuperseded]:
            return [
                each
                for each in self.events
                if isinstance(each, ControlApplied | ControlSuperseded) and each.control == control
            ]

        await self.until(found)
        [receipt] = found()
        return receipt

    async def seen_at(self, control: str) -> NDArray[np.uint8]:
        """Return the picture that the receipt of a push names."""
        applied = await self.receipt(control)
        assert isinstance(applied, ControlApplied)

        def found() -> list[NDArray[np.uint8]]:
            return [picture for event, picture in self.pictures if event.pts_us == applied.pts_us]

        await self.until(found)
        return found()[0]


@asynccontextmanager
async def watching(session: Session) -> AsyncIterator[Watcher]:
    """Watch a session for the length of a block."""
    watcher = Watcher(session)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(watcher.watch())
        yield watcher
        task.cancel()


def levels(pictures: list[NDArray[np.uint8]]) -> list[int]:
    return [round(float(picture.mean())) for picture in pictures]


class MediaSuite:
    """Subclass it and give it a fixture `service`."""

    async def test_the_view_says_what_can_be_pushed(self, service: MediaService) -> None:
        async with service.session() as session:
            told = {each.name: (each.kind, each.merge) for each in session.view.inputs}
        assert told == {
            "camera": ("video", "latest"),
            "clip": ("video", "fifo"),
            "microphone": ("audio", "fifo"),
        }

    async def test_a_picture_comes_out_as_it_went_in_and_its_receipt_names_it(
        self, service: MediaService
    ) -> None:
        given = np.random.default_rng(3).integers(0, 255, (SIDE_PX, SIDE_PX, 3), dtype=np.uint8)
        async with service.session() as session, watching(session) as watcher:
            assert np.array_equal(await watcher.seen_at(await session.push_image(given)), given)
            file = file_of(given)
            assert np.array_equal(await watcher.seen_at(await session.push_image(file)), given)

    async def test_a_file_by_its_path_is_set_upright(
        self, service: MediaService, tmp_path: Path
    ) -> None:
        path = tmp_path / "turned.jpg"
        path.write_bytes(turned(np.ascontiguousarray(np.rot90(quarters(300, 300))), 6))
        async with service.session() as session, watching(session) as watcher:
            picture = await watcher.seen_at(await session.push_image(path))
            assert corners(picture) == list(CORNERS)
            with pytest.raises(FileNotFoundError):
                await session.push_image(tmp_path / "none.jpg")

    async def test_c09_c33_any_size_comes_out_in_the_one_size_of_the_stream(
        self, service: MediaService
    ) -> None:
        sizes = [(853, 481), (854, 481), (853, 480), (2, 2), (640, 480), (320, 240), (480, 640)]
        async with service.session() as session, watching(session) as watcher:
            for width, height in sizes:
                pushed = await session.push_image(quarters(width, height))
                assert corners(await watcher.seen_at(pushed)) == list(CORNERS)
            for width, height in ((1, 1), (8192, 8)):
                await watcher.seen_at(await session.push_image(quarters(width, height)))
            inits = [event for event in watcher.events if event.type == "media.init"]
            assert len([each for each in inits if each.stream == "video"]) == 1

    async def test_every_frame_of_a_clip_is_seen_in_its_order(self, service: MediaService) -> None:
        given = list(range(5, 245, 4))
        async with service.session() as session, watching(session) as watcher:
            last = ""
            for number, level in enumerate(given):
                last = await session.push_video(
                    grey(level),
                    stream="clip",
                    pts_us=round(number * 1e6 / 30),
                    last=number == len(given) - 1,
                )
            assert isinstance(await watcher.receipt(last), ControlApplied)
            assert levels(await watcher.shown(len(given))) == given

    async def test_of_a_camera_the_newest_is_seen_after_a_pause(
        self, service: MediaService
    ) -> None:
        async with service.session() as session, watching(session) as watcher:
            await session.pause()
            for level in range(100):
                await session.push_video(grey(level), stream="camera")
            final = await session.push_video(grey(222), stream="camera", last=True)
            await session.resume()
            assert levels([await watcher.seen_at(final)]) == [222]
            assert len(watcher.pictures) <= 4

    async def test_a_clip_waits_while_the_session_is_paused(self, service: MediaService) -> None:
        given = list(range(0, 240, 6))
        async with service.session() as session, watching(session) as watcher:
            await session.pause()

            async def push() -> None:
                for number, level in enumerate(given):
                    at_us = round(number * 1e6 / 30)
                    await session.push_video(grey(level), stream="clip", pts_us=at_us)

            async with asyncio.TaskGroup() as tasks:
                pushing = tasks.create_task(push())
                done, _ = await asyncio.wait([pushing], timeout=0.5)
                assert not done, "a paused session holds only so much"
                await session.resume()
            assert levels(await watcher.shown(len(given) - 1)) == given[:-1]

    async def test_a_clip_that_its_sender_leaves_ends_by_itself(
        self, service: MediaService
    ) -> None:
        async with service.session() as session, watching(session) as watcher:
            await session.push_video(grey(40), stream="clip", pts_us=0)
            await session.push_video(grey(80), stream="clip", pts_us=33_333)
            assert levels(await watcher.shown(2)) == [40, 80]

    async def test_c34_a_clip_with_varying_times_and_b_frames_lasts_as_long_as_it_did(
        self, service: MediaService
    ) -> None:
        times = [0, 32, 65, 66, 66 + 500, 599, 632, 800, 801, 1000]
        pictures = [grey(20 * number + 10) for number in range(len(times))]
        clip = clip_of(pictures, times, bf="3")
        async with service.session() as session, watching(session) as watcher:
            assert isinstance(await watcher.receipt(await session.push_clip(clip)), ControlApplied)
            count = 31
            seen = levels(await watcher.shown(count - 1))
            assert seen == sorted(seen)
            events = [event for event, _ in watcher.pictures]
            assert [event.pts_us for event in events] == sorted({e.pts_us for e in events})
            assert abs(len(watcher.pictures) - count) <= 1

    async def test_what_cannot_be_used_is_refused_and_the_stream_goes_on(
        self, service: MediaService
    ) -> None:
        async with service.session() as session, watching(session) as watcher:
            image, video = session.push_image, session.push_video
            clip, audio = session.push_clip, session.push_audio
            none, mono = np.full(480, np.nan, np.float32), np.zeros(480, np.float32)
            refused: list[tuple[Callable[[], Awaitable[str]], str]] = [
                (lambda: image(b"no picture"), "bad_media"),
                (lambda: image(file_of(quarters(64, 64))[:90]), "bad_media"),
                (lambda: video(np.zeros((4, 4), np.uint8)), "bad_media"),
                (lambda: video(np.zeros((0, 4, 3), np.uint8)), "bad_media"),
                (lambda: image(np.zeros((4, 8193, 3), np.uint8)), "bad_media"),
                (lambda: clip(b"no clip"), "bad_media"),
                (lambda: image(quarters(4, 4), stream="screen"), "unknown_stream"),
                (lambda: image(quarters(4, 4), stream="microphone"), "wrong_type"),
                (lambda: audio(mono, 48_000, stream="clip"), "wrong_type"),
                (lambda: audio(none, 48_000), "bad_media"),
                (lambda: audio(np.zeros((480, 6), np.float32), 48_000), "bad_media"),
                (lambda: audio(mono, 7000), "bad_media"),
                (lambda: audio(mono[:0], 48_000), "bad_media"),
            ]
            for push, code in refused:
                with pytest.raises(CommandError) as error:
                    await push()
                assert error.value.code == code
            assert np.array_equal(
                await watcher.seen_at(await session.push_image(quarters(SIDE_PX, SIDE_PX))),
                quarters(SIDE_PX, SIDE_PX),
            )

    @pytest.mark.parametrize(("rate_hz", "channels"), [(8000, 1), (44_100, 2)])
    async def test_c35_sound_comes_out_at_its_pitch_and_length(
        self, service: MediaService, rate_hz: int, channels: int
    ) -> None:
        times = np.arange(2 * rate_hz) / rate_hz
        given = np.repeat((0.4 * np.sin(2 * np.pi * 1000 * times))[:, None], channels, axis=1)
        step = rate_hz * 37 // 1000
        async with service.session() as session, watching(session) as watcher:
            for start in range(0, len(given), step):
                await session.push_audio(
                    given[start : start + step].astype(np.float32),
                    rate_hz,
                    pts_us=round(start * 1e6 / rate_hz),
                    last=start + step >= len(given),
                )
            length = 2 * 48_000
            await watcher.until(lambda: sum(map(len, watcher.sound)) >= length - 960)
            heard = np.concatenate(watcher.sound)
        assert abs(len(heard) - length) <= 960
        assert pitch_hz(heard[:, 0], 48_000) == pytest.approx(1000, abs=1)
