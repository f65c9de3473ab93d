"""One WebRTC peer of a session: from its answered offer to its end.

    offer answered -> stands (connected, `events` open) -> attached -> talks -> bye, closed

Nothing of the session is touched before the peer stands. However it ends, `run` gives the
attachment back, says why where it can, and closes the connection.
"""

import asyncio
import json
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeVar

import numpy as np
from aiortc import MediaStreamTrack, RTCConfiguration, RTCDataChannel, RTCIceCandidate
from aiortc.mediastreams import MediaStreamError
from av import AudioFrame, VideoFrame
from numpy.typing import NDArray

from reverie.media import AudioCodec, Codec, MonotonicClock
from reverie.rtc.aiortc_seams import round_trip_s, within_ports
from reverie.rtc.audio_out import AudioOut
from reverie.rtc.data_channels import ACTIONS, EVENTS, EventsChannel
from reverie.rtc.edge import Edge
from reverie.rtc.errors import HttpRefusedError, PeerEndedError, PeerLeftError
from reverie.rtc.ice import IceEnd
from reverie.rtc.intake import Intake
from reverie.rtc.negotiation import Negotiated, no_candidates
from reverie.rtc.packet_track import sender_failed
from reverie.rtc.peer_clock import PeerClock
from reverie.rtc.tail_probe import TailProbe
from reverie.rtc.video_out import VideoOut
from reverie.rtc.wire import CloseCode, close_code, encode_text
from reverie.sessions import (
    Attachment,
    AttachOptions,
    HostedSession,
    Role,
    SessionEndedError,
    TooManyError,
)
from reverie.sessions.commands import Playhead, RequestKeyFrame
from reverie.sessions.errors import AttachmentEndedError, CommandError
from reverie.sessions.events import AnyEvent, Error, MediaChunk, MediaInit, SessionInterrupted

logger = logging.getLogger(__name__)

FAREWELL_S = 1.0
"""For the peer to hear why it is ended, and to leave by itself."""

_LOOK_S = 0.25


@dataclass(frozen=True, slots=True)
class Manners:
    """How a kind of peer behaves.

    Attributes:
        talks: it has an `events` channel, which is also its heartbeat.
        watches: it is attached, and counts as somebody who sees.
    """

    talks: bool = True
    watches: bool = True


class WebRtcPeer:
    """One peer. `run` is its life."""

    def __init__(
        self,
        peer: str,
        hosted: HostedSession,
        role: Role,
        negotiated: Negotiated,
        edge: Edge,
        manners: Manners,
        configuration: RTCConfiguration,
    ) -> None:
        """Listen to the connection from now on; nothing of the session is touched yet."""
        self.id = peer
        self.session = hosted.id
        self.role = role
        self.negotiated = negotiated
        self.paths = 1  # laid so far
        self._hosted = hosted
        self._edge = edge
        self._options = edge.options.rtc
        self._manners = manners
        self._configuration = configuration
        self._tasks: asyncio.TaskGroup | None = None  # while the peer stands
        self._connection = negotiated.connection
        self._loop = asyncio.get_running_loop()
        self._peer_clock = PeerClock()
        self._events: EventsChannel | None = None
        self._actions: RTCDataChannel | None = None
        self._intake: Intake | None = None
        self._attachment: Attachment | None = None
        self._changed = asyncio.Event()  # of the connection or its channels
        self._leaving = asyncio.Event()
        self._probe = TailProbe()
        self._trip_s: float | None = None
        self._kinds: dict[str, str] = {}  # of the streams that have begun
        self._clock = MonotonicClock()
        self._video = self._video_out()
        self._audio = self._audio_out()
        self._listen()

    # --- its life ---

    async def run(self) -> None:
        """Live until either side ends it. Cancelling it closes the connection."""
        code, reason, told = int(CloseCode.INTERNAL), "internal_error", None
        try:
            await self._live()
        except AttachmentEndedError as error:
            code, reason = close_code(error.reason), error.reason
        except PeerEndedError as error:
            code, reason = error.code, error.reason
            told = Error(code=reason, message=error.message)
        except PeerLeftError:
            code, reason = 0, "peer"
        except Exception:
            logger.exception("peer %s of session %s failed", self.id, self.session)
            told = Error(code=reason, message="the server made a mistake; its log says more")
        finally:
            self._tasks = None
            self._edge.metrics.ended.labels(reason).inc()
            logger.info("peer %s of session %s is over: %s", self.id, self.session, reason)
            await self._close(code, reason, told)

    def leave(self) -> None:
        """End it, because the peer asked for that."""
        self._leaving.set()
        self._changed.set()

    async def add_candidates(self, candidates: Sequence[RTCIceCandidate]) -> None:
        """Try to reach the peer there as well. What comes too late is ignored."""
        await self.negotiated.route.add_candidates(candidates)

    async def restart(self, remote: IceEnd) -> IceEnd:
        """Lay a new path to the peer, and return our end of it; the old one carries on meanwhile.

        Raises:
            HttpRefusedError: the peer does not stand, or nobody helps to find a path.
        """
        if self._tasks is None or self._connection.connectionState != "connected":
            text = "only a peer that stands can restart ICE"
            raise HttpRefusedError(HTTPStatus.CONFLICT, "not_connected", text)
        try:
            with within_ports(self._options.ports):
                async with asyncio.timeout(self._options.gather_timeout_s):
                    end = await self.negotiated.route.lay(self._configuration, remote)
        except TimeoutError:
            raise no_candidates() from None
        self.paths += 1
        self._edge.metrics.restarts.inc()
        self._tasks.create_task(self._take_path(), name=f"peer {self.id} path")
        return end

    async def _take_path(self) -> None:
        route = self.negotiated.route
        try:
            async with asyncio.timeout(self._options.connect_timeout_s):
                worked = await route.take()
        except TimeoutError:
            await route.forget()
            worked = False
        logger.info("peer %s: the new path %s", self.id, "works" if worked else "does not work")

    async def _live(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._watch_connection(), name=f"peer {self.id} connection")
                await self._stands()
                self._edge.metrics.peers_connected.inc()
                self._tasks = tasks
                if self._manners.watches:
                    tasks.create_task(self._talk(), name=f"peer {self.id} talk")
                else:
                    tasks.create_task(self._until_over(), name=f"peer {self.id} session")
                for stream, transceiver in self.negotiated.inputs.items():
                    feeding = self._feed(stream, transceiver.receiver.track)
                    tasks.create_task(feeding, name=f"peer {self.id} feeds {stream}")
        except ExceptionGroup as group:
            raise _first(group) from group

    async def _stands(self) -> None:
        """Return once the peer is connected, with its channel; it has to be in time."""
        limit_s = self._options.connect_timeout_s
        try:
            async with self._edge.greeting(limit_s):
                while self._connection.connectionState != "connected" or (
                    self._manners.talks and self._events is None
                ):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            if self._edge.draining:
                raise AttachmentEndedError("shutdown") from None
            text = f"it did not connect within {limit_s:g} s (connect_timeout_s)"
            raise PeerEndedError(CloseCode.TIMEOUT, "connect_timeout", text) from None

    async def _watch_connection(self) -> None:
        """Raise when the peer is gone, silent, asks to go, or its sender has died."""
        while True:
            self._check_alive()
            self._note_trip()
            self._show_again_if_lost()
            self._changed.clear()
            try:
                async with asyncio.timeout(_LOOK_S):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def _check_alive(self) -> None:
        if self._attachment is None and self._hosted.state.over:
            raise AttachmentEndedError(self._hosted.state.reason or "closed")
        if self._leaving.is_set() or self._connection.connectionState in ("failed", "closed"):
            raise PeerLeftError(1006)
        for out in (self._video, self._audio):
            if out is not None and out.track.readyState == "ended":
                raise sender_failed()
        if self._events is None:
            return
        silent_s = self._loop.time() - self._events.heard_s
        if silent_s >= self._options.heartbeat_s:
            text = f"nothing was heard for {self._options.heartbeat_s:g} s (heartbeat_s)"
            raise PeerEndedError(CloseCode.TIMEOUT, "heartbeat", text)
        if self._events.overflowed:
            text = f"over {self._options.inbox_messages} messages wait (inbox_messages)"
            raise PeerEndedError(CloseCode.SLOW_VIEWER, "slow_viewer", text)

    def _note_trip(self) -> None:
        sender = self.negotiated.video or self.negotiated.audio
        trip_s = round_trip_s(sender) if sender is not None else None
        if trip_s is not None and trip_s != self._trip_s:
            self._trip_s = trip_s
            self._edge.metrics.round_trip.observe(trip_s)

    def _show_again_if_lost(self) -> None:
        if self._attachment is not None and self._probe.due(self._loop.time()):
            self._hosted.show_again(self._attachment)

    # --- talking ---

    async def _talk(self) -> None:
        attachment = self._attachment = self._attach()
        attached = self._edge.metrics.attached.labels(attachment.role.value)
        attached.inc()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._send(attachment), name="send")
                if self._events is not None:
                    tasks.create_task(self._receive(attachment, self._events), name="receive")
        except ExceptionGroup as group:
            raise _first(group) from group
        finally:
            attached.dec()
            attachment.detach()

    def _attach(self) -> Attachment:
        options = AttachOptions(
            codec=self.negotiated.codec or Codec.VP8,
            audio=AudioCodec.OPUS if self._audio is not None else None,
            message_bytes=self._edge.options.message_bytes,
            commands_per_s=self._edge.options.commands_per_s,
        )
        try:
            attachment = self._hosted.attach(self.role, options)
        except SessionEndedError as error:
            raise PeerEndedError(
                CloseCode.NO_SUCH_SESSION, f"no_such_session: {error.reason}", str(error)
            ) from None
        except TooManyError as error:
            raise PeerEndedError(CloseCode.TOO_MANY, f"too_many_{error.what}", str(error)) from None
        if self._video is not None:
            self._video.request_key = lambda: self._request_key(attachment)
            self._video.refresh = lambda: self._hosted.show_again(attachment)
            self._video.limit = lambda rate: self._hosted.limit_video(attachment, rate)
            self._video.limit(self._options.max_bitrate)
        return attachment

    async def _receive(self, attachment: Attachment, events: EventsChannel) -> None:
        intake = Intake(attachment, self._edge.options, self._edge.metrics)
        intake.seen = self._probe.seen
        self._intake = intake  # also for `actions`, whenever it opens
        if self._actions is not None:
            self._take_actions(self._actions, intake)
        while True:
            await attachment.has_room()
            intake.hear(await events.receive())

    def _take_actions(self, channel: RTCDataChannel, intake: Intake) -> None:
        channel.on("message", lambda message: intake.hear(message, quiet=True))

    async def _send(self, attachment: Attachment) -> None:
        while True:
            event: AnyEvent | None = await attachment.take()
            if isinstance(event, MediaInit):
                self._kinds[event.stream] = event.kind
                event = event.model_copy(update={"container": "rtp"})
            elif isinstance(event, MediaChunk):
                event = await self._send_media(event)
            elif isinstance(event, SessionInterrupted):
                self._cut()
            if event is not None and self._events is not None:
                await self._say(event, self._events)

    async def _send_media(self, chunk: MediaChunk) -> MediaChunk | None:
        """Send the bytes of a chunk as RTP; return what to tell of it, if anything."""
        out = self._audio if self._kinds.get(chunk.stream) == "audio" else self._video
        if out is None:
            return None
        sent = await out.send(chunk)
        if sent is not None:
            self._edge.metrics.frames.inc()
            self._edge.metrics.dropped.inc(sent.dropped)
            self._edge.metrics.sent_bytes.inc(sent.size_bytes)
        return sent

    def _cut(self) -> None:
        self._peer_clock.begin_anew()
        for out in (self._video, self._audio):
            if out is not None:
                out.cut()

    def _shown(self, chunk: MediaChunk) -> None:
        """Note that a frame was sent: a peer that cannot say so itself has seen it."""
        if self._manners.talks:
            if chunk.last:
                self._probe.sent(chunk.chunk, self._loop.time())
        elif self._attachment is not None and chunk.last:
            pts_us = max(0, chunk.pts_us)
            self._attachment.submit(Playhead(id="sent", chunk=chunk.chunk, pts_us=pts_us))

    def _request_key(self, attachment: Attachment) -> None:
        for stream, kind in self._kinds.items():
            if kind == "video":
                attachment.submit(RequestKeyFrame(id="pli", stream=stream), quiet=True)

    async def _say(self, event: AnyEvent, events: EventsChannel) -> None:
        limit_s = self._edge.options.send_timeout_s
        text = encode_text(event)
        try:
            async with asyncio.timeout(limit_s):
                await events.send(text)
        except TimeoutError:
            message = f"nothing was taken for {limit_s:g} s (send_timeout_s)"
            raise PeerEndedError(CloseCode.SLOW_VIEWER, "slow_viewer", message) from None
        self._edge.metrics.sent_bytes.inc(len(text))

    # --- what comes in ---

    async def _feed(self, stream: str, track: MediaStreamTrack) -> None:
        """Hand on what the peer sends, for as long as it does. Nothing waits here."""
        while True:
            try:
                frame = await track.recv()
            except MediaStreamError:
                return
            with suppress(CommandError):  # the stream is full, or the session over
                self._put(stream, frame)

    def _put(self, stream: str, frame: object) -> None:
        if isinstance(frame, VideoFrame):
            self._hosted.put_video(stream, frame, _pts_us(frame))
        elif isinstance(frame, AudioFrame):
            self._hosted.put_audio(stream, _samples(frame), frame.sample_rate, _pts_us(frame))

    async def _until_over(self) -> None:
        await self._hosted.ended()
        raise AttachmentEndedError(self._hosted.state.reason or "closed")

    # --- beginning and end ---

    def _video_out(self) -> VideoOut | None:
        sender = self.negotiated.video
        if sender is None:
            return None
        now_us, metrics = self._clock.now_us, self._edge.metrics
        out = VideoOut(sender, self._peer_clock, now_us, self._options, metrics)
        out.shown = self._shown
        return out

    def _audio_out(self) -> AudioOut | None:
        sender = self.negotiated.audio
        if sender is None:
            return None
        return AudioOut(sender, self._peer_clock, self._clock.now_us)

    def _listen(self) -> None:
        self._connection.on("connectionstatechange", self._changed.set)
        self._connection.on("datachannel", self._opened)

    def _opened(self, channel: RTCDataChannel) -> None:
        if channel.label == EVENTS and self._events is None and self._manners.talks:
            self._events = EventsChannel(channel, self._options.inbox_messages, self._loop.time)
            self._changed.set()
        elif channel.label == ACTIONS and self._actions is None and self._manners.talks:
            self._actions = channel
            if self._intake is not None:
                self._take_actions(channel, self._intake)

    async def _close(self, code: int, reason: str, told: Error | None) -> None:
        """Say why, give the peer a moment to leave by itself, and close whatever is left."""
        try:
            async with asyncio.timeout(self._options.close_timeout_s):
                if code and self._events is not None:
                    await self._say_bye(self._events, code, reason, told)
                await self.negotiated.route.forget()
                await self._connection.close()
        except TimeoutError:
            logger.warning("peer %s was not closed in time", self.id)

    async def _say_bye(
        self, events: EventsChannel, code: int, reason: str, told: Error | None
    ) -> None:
        with suppress(PeerLeftError, TimeoutError):
            async with asyncio.timeout(FAREWELL_S):
                if told is not None:
                    await events.send(encode_text(told.model_copy(update=self._stamp())))
                await events.send(json.dumps({"type": "bye", "code": code, "reason": reason}))
                while self._connection.connectionState == "connected" and not events.closed:
                    self._changed.clear()
                    await self._changed.wait()

    def _stamp(self) -> dict[str, object]:
        sequence = self._attachment.outbox.sequence if self._attachment is not None else 0
        return {
            "session": self.session,
            "sequence": sequence,
            "time_us": self._clock.now_us(),
        }


def _samples(frame: AudioFrame) -> NDArray[np.float32]:
    """Return the sound [samples, channels] in -1..1; aiortc decodes to interleaved 16 bits."""
    pcm16 = frame.to_ndarray().reshape(-1, len(frame.layout.channels))
    return pcm16.astype(np.float32) / np.float32(2**15)


def _pts_us(frame: VideoFrame | AudioFrame) -> int:
    if frame.pts is None or frame.time_base is None:
        return 0
    return max(0, round(frame.pts * frame.time_base * 1_000_000))


_Found = TypeVar("_Found", bound=Exception)


def _first(group: BaseExceptionGroup[_Found]) -> _Found:
    """Return the first error in a group that is none itself."""
    found = group.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found
