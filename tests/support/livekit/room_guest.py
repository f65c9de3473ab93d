"""Somebody in a LiveKit room, by the real SDK: sees, hears, reads, and waits with limits."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from livekit import rtc
from livekit_rig import LiveKit
from numpy.typing import NDArray
from waiting import until

LIMIT_S = 40.0
"""How long a test waits for what must come; much longer than it takes."""
_KEPT_PICTURES = 64


@dataclass(frozen=True, slots=True)
class Picture:
    """What was seen of somebody.

    Attributes:
        number: counts the pictures that this guest has seen, from 1.
        pixels: height, width, RGB.
    """

    of: str
    number: int
    pixels: NDArray[np.uint8]

    @property
    def colour(self) -> tuple[float, float, float]:
        """Return its mean."""
        red, green, blue = (float(value) for value in self.pixels.mean((0, 1)))
        return red, green, blue


@dataclass(frozen=True, slots=True)
class Text:
    """A text stream that came to its end."""

    of: str
    topic: str
    text: str


@dataclass(slots=True)
class Guest:
    """A participant.

    Attributes:
        pictures: the last that were seen, of all video tracks.
        loudness: of the last pieces of sound that were heard, of all audio tracks, 0 to 32768.
        happened: the names of the room's events so far.
    """

    livekit: LiveKit
    room: rtc.Room
    room_name: str
    identity: str
    pictures: deque[Picture] = field(default_factory=lambda: deque(maxlen=_KEPT_PICTURES))
    loudness: deque[float] = field(default_factory=lambda: deque(maxlen=100))
    texts: list[Text] = field(default_factory=list)
    packets: list[rtc.DataPacket] = field(default_factory=list)
    happened: list[str] = field(default_factory=list)
    seen: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @classmethod
    @asynccontextmanager
    async def joined(
        cls, livekit: LiveKit, room: str, identity: str, *, topics: tuple[str, ...] = ()
    ) -> AsyncIterator[Self]:
        """Be in a room for as long as the block lasts.

        Args:
            topics: of text streams to read.
        """
        guest = cls(livekit, rtc.Room(), room, identity)
        guest._attend(topics)
        try:
            async with asyncio.timeout(LIMIT_S):
                await guest.room.connect(livekit.url, livekit.token(identity, room))
            yield guest
        finally:
            await guest.leave()

    async def leave(self) -> None:
        """Go; again changes nothing."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks) if tasks else None
        async with asyncio.timeout(LIMIT_S):
            await self.room.disconnect()

    @property
    def me(self) -> rtc.LocalParticipant:
        """Return what publishes and sends."""
        return self.room.local_participant

    def attributes(self, identity: str) -> dict[str, str]:
        """Return somebody's attributes, none for who is not here."""
        found = self.room.remote_participants.get(identity)
        return dict(found.attributes) if found is not None else {}

    def texts_on(self, topic: str) -> list[str]:
        """Return what was read on a topic."""
        return [each.text for each in self.texts if each.topic == topic]

    async def picture(
        self, fits: Callable[[Picture], bool] = lambda _: True, what: str = "a picture"
    ) -> Picture:
        """Wait for a picture that comes from now on and fits."""
        since = self.seen

        def found() -> Picture | None:
            fresh = (each for each in self.pictures if each.number > since and fits(each))
            return next(fresh, None)

        await until(lambda: found() is not None, what)
        picture = found()
        assert picture is not None
        return picture

    async def meets(self, identity: str) -> rtc.RemoteParticipant:
        """Wait until somebody is here."""
        await until(lambda: identity in self.room.remote_participants, f"{identity} to come")
        return self.room.remote_participants[identity]

    async def fault(self, fault: str, *, kind: str = "", count: int = 1) -> None:
        """Have something go wrong for this guest, as `LiveKit.fault` does."""
        await self.livekit.fault(fault, self.room_name, self.identity, kind=kind, count=count)

    async def show(self, colour: tuple[int, int, int], size: int = 160) -> "Camera":
        """Publish a camera that sees one colour."""
        return await Camera.published(self.me, colour, size)

    def see(self, picture: Picture) -> None:
        """Take a picture that has come."""
        self.pictures.append(picture)

    def _attend(self, topics: tuple[str, ...]) -> None:
        for name in (
            "participant_connected", "participant_disconnected", "disconnected", "reconnecting",
            "reconnected", "token_refreshed", "track_published", "track_unpublished",
        ):  # fmt: skip
            self.room.on(name, lambda *_, name=name: self.happened.append(name))
        self.room.on("track_subscribed", self._on_track)
        self.room.on("data_received", self.packets.append)
        for topic in topics:
            self.room.register_text_stream_handler(topic, self._on_text)

    def _on_track(
        self, track: rtc.Track, _: rtc.RemoteTrackPublication, owner: rtc.RemoteParticipant
    ) -> None:
        is_video = track.kind == rtc.TrackKind.KIND_VIDEO
        self._spawn(self._watch(track, owner.identity) if is_video else self._hear(track))

    def _on_text(self, reader: rtc.TextStreamReader, identity: str) -> None:
        self._spawn(self._read(reader, identity))

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watch(self, track: rtc.Track, owner: str) -> None:
        stream = rtc.VideoStream(track, capacity=1, format=rtc.VideoBufferType.RGB24)
        try:
            async for event in stream:
                frame = event.frame
                pixels = np.frombuffer(frame.data, np.uint8)
                self.seen += 1
                shape = (frame.height, frame.width, 3)
                self.see(Picture(owner, self.seen, pixels.reshape(shape)))
        finally:
            await stream.aclose()

    async def _hear(self, track: rtc.Track) -> None:
        stream = rtc.AudioStream(track)
        try:
            async for event in stream:
                samples = np.frombuffer(event.frame.data, np.int16).astype(np.float32)
                self.loudness.append(float(np.abs(samples).mean()))
        finally:
            await stream.aclose()

    async def _read(self, reader: rtc.TextStreamReader, identity: str) -> None:
        try:
            text = await reader.read_all()
        except rtc.StreamError:  # it broke off, as when this guest leaves
            return
        self.texts.append(Text(identity, reader.info.topic, text))


class Camera:
    """A published video track that shows one colour, until it is closed."""

    def __init__(self, source: rtc.VideoSource, colour: tuple[int, int, int], size: int) -> None:
        self.colour = colour
        self._source, self._size = source, size
        self._task = asyncio.create_task(self._run())

    @classmethod
    async def published(
        cls, by: rtc.LocalParticipant, colour: tuple[int, int, int], size: int
    ) -> "Camera":
        source = rtc.VideoSource(size, size)
        track = rtc.LocalVideoTrack.create_video_track("camera", source)
        options = rtc.TrackPublishOptions(
            source=rtc.TrackSource.SOURCE_CAMERA, simulcast=False, video_codec=rtc.VideoCodec.VP8
        )
        async with asyncio.timeout(LIMIT_S):
            await by.publish_track(track, options)
        return cls(source, colour, size)

    async def close(self) -> None:
        """Show nothing more."""
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._source.aclose()

    async def _run(self) -> None:
        while True:
            pixels = np.full((self._size, self._size, 3), self.colour, np.uint8)
            kind = rtc.VideoBufferType.RGB24
            self._source.capture_frame(
                rtc.VideoFrame(self._size, self._size, kind, pixels.tobytes())
            )
            await asyncio.sleep(1 / 20)
