"""A WebRTC client of a whole server, by aiortc: what a page does and receives."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np
from aiortc import (
    MediaStreamTrack,
    RTCBundlePolicy,
    RTCConfiguration,
    RTCDataChannel,
    RTCPeerConnection,
    RTCRtpReceiver,
    RTCSessionDescription,
)
from aiortc.mediastreams import MediaStreamError
from av import AudioFrame, VideoFrame
from numpy.typing import NDArray

from reverie.rtc.wire.framing import decode_event
from reverie.sessions.protocol.events import AnyEvent, ControlApplied
from reverie.sessions.protocol.media_events import MediaChunk, MediaInit

LIMIT_S = 20.0
PING_S = 0.5


@dataclass(slots=True)
class PeerClient:
    """One peer, from before its offer."""

    http: httpx.AsyncClient
    session: str
    token: str
    connection: RTCPeerConnection
    channel: RTCDataChannel | None = None
    actions: RTCDataChannel | None = None
    location: str = ""
    answer: dict[str, Any] = field(default_factory=dict)
    events: list[AnyEvent] = field(default_factory=list)
    other: list[dict[str, Any]] = field(default_factory=list)
    frames: list[VideoFrame] = field(default_factory=list)
    sound: list[AudioFrame] = field(default_factory=list)
    sees: bool = True
    pings: bool = True
    commands: int = 0
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _heard: int = 0
    _seen: MediaChunk | None = None
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def offer_video(self, codec: str = "vp8") -> None:
        """Want pictures, in a codec."""
        transceiver = self.connection.addTransceiver("video", direction="recvonly")
        capabilities = RTCRtpReceiver.getCapabilities("video")
        assert capabilities is not None
        known = capabilities.codecs
        wanted = [each for each in known if each.mimeType.lower() == f"video/{codec}"]
        rtx = [each for each in known if each.mimeType.lower() == "video/rtx"]
        transceiver.setCodecPreferences(wanted + rtx)
        self.connection.on("track", self._on_track)

    def offer_sound(self) -> None:
        """Want to hear."""
        self.connection.addTransceiver("audio", direction="recvonly")

    def offer_own(self, track: MediaStreamTrack) -> None:
        """Offer a camera or a microphone."""
        self.connection.addTransceiver(track, direction="sendonly")

    def open_channels(self) -> None:
        """Make the channels that a page makes."""
        self.channel = self.connection.createDataChannel("events")
        self.channel.on("message", self._on_message)
        self.actions = self.connection.createDataChannel("actions", ordered=False, maxRetransmits=0)

    async def connect(self, role: str = "driver") -> None:
        """Offer, take the answer, and return once the channel is open."""
        await self.signal(role)
        assert self.channel is not None
        await self.until(lambda: self.channel is not None and self.channel.readyState == "open")
        self._tasks.append(asyncio.create_task(self._ping(), name="ping"))

    async def unanswered(self) -> object:
        """Return an offer of pictures whose peer will never connect."""
        self.offer_video()
        self.open_channels()
        await self.connection.setLocalDescription(await self.connection.createOffer())
        return self.connection.localDescription.sdp

    async def signal(self, role: str = "driver") -> None:
        """Offer, and take the answer."""
        await self.connection.setLocalDescription(await self.connection.createOffer())
        reply = await self.post(self.connection.localDescription.sdp, role=role)
        assert reply.status_code == 201, reply.text
        self.answer = reply.json()
        self.location = reply.headers["location"]
        answer = RTCSessionDescription(self.answer["sdp"], self.answer["type"])
        await self.connection.setRemoteDescription(answer)

    async def post(self, sdp: object, **fields: Any) -> httpx.Response:
        """Post an offer as it is."""
        body = {"type": "offer", "sdp": sdp, **fields}
        return await self.http.post(
            f"/v1/sessions/{self.session}/webrtc", json=body, headers=self.authorization
        )

    @property
    def authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    # --- talking ---

    def say(self, **fields: Any) -> str:
        """Send a command; return its id."""
        assert self.channel is not None
        self.commands += 1
        fields.setdefault("id", f"m{self.commands}")
        self.channel.send(json.dumps(fields))
        return str(fields["id"])

    async def until(self, found: Callable[[], bool]) -> None:
        """Wait until something has come true; looked at whenever anything happens."""
        async with asyncio.timeout(LIMIT_S):
            while not found():
                self._news.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.05):  # states change without a word
                        await self._news.wait()

    async def hear(self, wanted: Callable[[AnyEvent], bool]) -> AnyEvent:
        """Return the next event that is as wanted, after those that were returned before."""

        def found() -> bool:
            return any(wanted(event) for event in self.events[self._heard :])

        await self.until(found)
        while True:
            event = self.events[self._heard]
            self._heard += 1
            if wanted(event):
                return event

    async def hears(self, kind: str) -> Any:
        """Return the next event of a type."""
        return await self.hear(lambda event: event.type == kind)

    async def ask(self, **fields: Any) -> AnyEvent:
        """Send a command and wait for its answer."""
        command = self.say(**fields)
        return await self.hear(
            lambda event: (
                event.type in ("request.accepted", "error")
                and getattr(event, "command", None) == command
            )
        )

    async def applied(self, command: str) -> ControlApplied:
        """Wait until a control acts."""
        event = await self.hear(
            lambda event: isinstance(event, ControlApplied) and event.control == command
        )
        assert isinstance(event, ControlApplied)
        return event

    async def shows(self, count: int) -> None:
        """Wait until so many frames were decoded."""
        await self.until(lambda: len(self.frames) >= count)

    async def bye(self) -> dict[str, Any]:
        """Wait for the server's last message."""
        await self.until(lambda: any(each["type"] == "bye" for each in self.other))
        return next(each for each in self.other if each["type"] == "bye")

    async def closed(self) -> None:
        """Wait until the connection has ended."""
        await self.until(lambda: self.connection.connectionState in ("closed", "failed"))

    @property
    def rtp_times(self) -> set[int]:
        """The RTP times of the frames that were decoded; aiortc counts from the first."""
        first = self.pictures[0].rtp_timestamp or 0
        return {(first + (frame.pts or 0)) % 2**32 for frame in self.frames}

    def picture(self, chunk: MediaChunk) -> NDArray[np.uint8]:
        """Return the decoded frame [H, W, 3] of a chunk."""
        return pixels(next(frame for frame in self.frames if frame.pts == self.ticks(chunk)))

    def ticks(self, chunk: MediaChunk) -> int:
        """Return the time of a chunk's frame as aiortc counts it."""
        return ((chunk.rtp_timestamp or 0) - (self.pictures[0].rtp_timestamp or 0)) % 2**32

    @property
    def pictures(self) -> list[MediaChunk]:
        """The chunks of streams of pictures."""
        inits = [event for event in self.events if isinstance(event, MediaInit)]
        streams = {init.stream for init in inits if init.kind == "video"}
        return [chunk for chunk in self.chunks if chunk.stream in streams]

    @property
    def chunks(self) -> list[MediaChunk]:
        return [event for event in self.events if isinstance(event, MediaChunk)]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.connection.close()

    # --- what comes ---

    def _on_message(self, message: str | bytes) -> None:
        assert isinstance(message, str)
        value = json.loads(message)
        if value["type"] in ("pong", "bye"):
            self.other.append(value)
        else:
            event = decode_event(message)
            self.events.append(event)
            if isinstance(event, MediaChunk):
                self._see()
        self._news.set()

    def _on_track(self, track: MediaStreamTrack) -> None:
        self._tasks.append(asyncio.create_task(self._watch(track), name="watch"))

    async def _watch(self, track: MediaStreamTrack) -> None:
        with suppress(MediaStreamError):
            while True:
                frame = await track.recv()
                if isinstance(frame, VideoFrame):
                    self.frames.append(frame)
                    self._see()
                elif isinstance(frame, AudioFrame):
                    self.sound.append(frame)
                self._news.set()

    def _see(self) -> None:
        """Say which chunk's last frame was shown, when it is a new one.

        aiortc keeps each frame back until the one after it begins, so the next counts as shown. Of
        a program without pictures, what was told counts.
        """
        pictures = self.pictures
        if not self.sees or self.channel is None or self.channel.readyState != "open":
            return
        if pictures and not self.frames:
            return
        seen = [chunk for chunk in (pictures or self.chunks)[-100:] if chunk.last]
        if pictures:
            held = pictures[0].duration_us * 90 // 1000
            newest = (self.frames[-1].pts or 0) + 3 * held // 2
            seen = [chunk for chunk in seen if self.ticks(chunk) <= newest]
        if seen and seen[-1] is not self._seen:
            self._seen = seen[-1]
            self.say(type="playhead", chunk=seen[-1].chunk, pts_us=max(0, seen[-1].pts_us))

    async def _ping(self) -> None:
        number = 0
        while self.channel is not None and self.channel.readyState == "open":
            if self.pings:
                self.channel.send(json.dumps({"type": "ping", "n": number}))
                number += 1
            await asyncio.sleep(PING_S)


def pixels(frame: VideoFrame) -> NDArray[np.uint8]:
    """Return a frame [H, W, 3]."""
    return np.asarray(frame.to_ndarray(format="rgb24"), dtype=np.uint8)


@asynccontextmanager
async def peer_client(
    http: httpx.AsyncClient, opened: dict[str, Any], token: str | None = None
) -> AsyncIterator[PeerClient]:
    """Make a client that has offered nothing yet; afterwards it is closed."""
    connection = RTCPeerConnection(RTCConfiguration([], bundlePolicy=RTCBundlePolicy.MAX_BUNDLE))
    client = PeerClient(http, opened["id"], token or opened["token"], connection)
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def watching(
    http: httpx.AsyncClient,
    opened: dict[str, Any],
    *,
    token: str | None = None,
    codec: str = "vp8",
    role: str = "driver",
) -> AsyncIterator[PeerClient]:
    """Connect a client that wants pictures."""
    async with peer_client(http, opened, token) as client:
        client.offer_video(codec)
        client.open_channels()
        await client.connect(role)
        yield client
