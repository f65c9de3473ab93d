"""The output streams of a session: from a chunk's frames to the outboxes of those who watch."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from reverie.engine.emissions import FramesOut
from reverie.media import (
    AudioFanout,
    FrameTag,
    MediaFrame,
    Size,
    StreamFormat,
    VideoFanout,
    VideoSubscription,
)
from reverie.media.espeak import Speech
from reverie.models.spec import StreamKind, StreamSpec
from reverie.sessions.attachment import Attachment
from reverie.sessions.audience import Audience
from reverie.sessions.errors import CommandError, ErrorCode
from reverie.sessions.events import MediaChunk, MediaInit
from reverie.sessions.program_controls import ProgramControls
from reverie.sessions.scopes import CancelScope, ScopeKind
from reverie.sessions.sound_output import SoundOutput
from reverie.sessions.state import SessionState, StreamState
from reverie.sessions.text_output import TextOutput
from reverie.sessions.turns import Turns
from reverie.sessions.voice import Voice

UNSHOWN_CHUNKS = 4
"""Kept for the first to come; generation stops at a chunk's end while nobody watches."""

VOICE = "voice"
"""What the stream is called in which the server speaks a program's text."""

OpenFanout = Callable[[float], VideoFanout]
"""Frames a second -> a fan-out; for tests to set its limits."""


class VideoOutput:
    """One video stream. Encoding is the fan-out's; this room says whose frames they are."""

    def __init__(self, stream: StreamState, session: SessionState, fanout: VideoFanout) -> None:
        self.stream = stream
        self.fanout = fanout
        self._session = session
        self._subscriptions: dict[int, VideoSubscription] = {}
        self._watchers: dict[int, Attachment] = {}
        # What was made before anybody came, so that whoever comes first sees the beginning.
        self._unshown: deque[FramesOut] | None = deque(maxlen=UNSHOWN_CHUNKS)
        self.voice: Voice | None = None  # keeps pace with these pictures

    @property
    def has_unshown(self) -> bool:
        """Whether frames wait for the first to come."""
        return bool(self._unshown)

    def publish(self, out: FramesOut) -> None:
        """Hand a chunk's frames to the encoders, or keep them until somebody comes.

        Raises:
            UnsupportedPictureError: no codec takes such frames.
        """
        if self._unshown is None:
            self._encode(out)
        else:
            for frame in out.frames:
                Size.of(frame)
            self._unshown.append(out)
        self.stream.chunk = max(self.stream.chunk, out.chunk)
        self.stream.frames += len(out.frames)
        self.stream.newest_us = out.pts_us + (len(out.frames) - 1) * out.duration_us
        if self.voice is not None:
            self.voice.pictures(self.stream.newest_us + out.duration_us)

    def _encode(self, out: FramesOut) -> None:
        count = len(out.frames)
        for index in range(count):
            tag = FrameTag(
                pts_us=out.pts_us + index * out.duration_us,
                duration_us=out.duration_us,
                chunk=out.chunk,
                frame=index,
                last=index == count - 1,
                step=out.step,
                discontinuity=out.discontinuity and index == 0,
                final=out.final,
            )
            self.fanout.publish(out.frames[index], tag)

    def show(self, attachment: Attachment) -> None:
        """Begin to fill an outbox. Showing twice is showing once.

        The first of all gets what was made so far; whoever comes later, the newest picture.
        """
        if attachment.key in self._subscriptions or self.stream.reason is not None:
            return

        def deliver(frame: MediaFrame) -> None:
            init = self._init(frame.encoded.format)
            attachment.outbox.put_frame(init, _chunk(self.stream.name, frame))

        self._watchers[attachment.key] = attachment
        self._subscriptions[attachment.key] = self.fanout.subscribe(
            attachment.options.codec, deliver
        )
        self.limit_changed(attachment)
        unshown, self._unshown = self._unshown, None
        for out in unshown or ():
            self._encode(out)

    def hide(self, attachment: Attachment) -> None:
        """Stop to fill an outbox."""
        subscription = self._subscriptions.pop(attachment.key, None)
        self._watchers.pop(attachment.key, None)
        if subscription is not None:
            subscription.close()

    def show_again(self, attachment: Attachment) -> None:
        """Put the newest picture into an outbox once more; the stream goes on from a key frame."""
        if attachment.key in self._subscriptions:
            self.hide(attachment)
            self.show(attachment)

    def request_key_frame(self, attachment: Attachment) -> None:
        """Let a frame come soon that can be decoded without earlier ones."""
        subscription = self._subscriptions.get(attachment.key)
        if subscription is not None:
            subscription.request_key_frame()

    def limit_changed(self, attachment: Attachment) -> None:
        """Heed how many bits a second somebody's line can take."""
        subscription = self._subscriptions.get(attachment.key)
        if subscription is not None:
            subscription.limit(attachment.bits_per_s)

    def cut(self, before_us: int) -> None:
        """Drop every frame before a media time, wherever it is on its way."""
        self.fanout.flush()
        if self._unshown:
            self._unshown.clear()
        for attachment in self._watchers.values():
            attachment.outbox.cut(self.stream.name, before_us)

    def end(self, reason: str) -> None:
        """End the stream for everybody; nothing of it comes afterwards."""
        self.stream.reason = reason
        for attachment in tuple(self._watchers.values()):
            attachment.outbox.complete(self.stream.name, reason)
            self.hide(attachment)
        self.fanout.close()

    def _init(self, format: StreamFormat) -> MediaInit:
        return _media_init(self.stream.name, self.stream.rate_hz, format, self._session.seed)


Output = VideoOutput | SoundOutput


class Outputs:
    """All that a session puts out, a stream each, with a cancel scope of its own.

    Iterating goes through the media: video, then audio.
    """

    def __init__(
        self,
        state: SessionState,
        controls: ProgramControls,
        program: CancelScope,
        audience: Audience,
        turns: Turns,
        open_fanout: OpenFanout = VideoFanout,
    ) -> None:
        """Make the streams of every loop; cancelling a stream's scope ends it."""
        self._state = state
        self._videos: dict[str, VideoOutput] = {}
        self._sounds: dict[str, SoundOutput] = {}
        self._texts: dict[str, TextOutput] = {}
        scopes = {loop.name: program.open(ScopeKind.LOOP, loop.name) for loop in controls.loops}
        kinds = {spec.kind for _, spec in controls.streams}
        self._heard_only = StreamKind.VIDEO not in kinds and StreamKind.AUDIO in kinds
        for loop, spec in controls.streams:
            if spec.kind is StreamKind.AUDIO:
                self.add_sound(spec, scopes[loop.name])
                continue
            stream = StreamState(spec.name, spec.kind, spec.rate_hz, loop.name)
            state.streams[spec.name] = stream
            scope = scopes[loop.name].open(ScopeKind.STREAM, spec.name)
            if spec.kind is StreamKind.VIDEO:
                video = VideoOutput(stream, state, open_fanout(spec.rate_hz))
                self._videos[spec.name] = video
                scope.on_cancel(video.end)
            else:
                text = TextOutput(stream, audience, turns)
                self._texts[spec.name] = text
                scope.on_cancel(text.end)

    def add_sound(self, spec: StreamSpec, scope: CancelScope) -> SoundOutput:
        """Make an audio stream, before `start`; of a loop, or of the server's own (a voice)."""
        loop = scope.name if scope.kind is ScopeKind.LOOP else ""
        stream = StreamState(spec.name, spec.kind, spec.rate_hz, loop)
        self._state.streams[spec.name] = stream
        fanout = AudioFanout(spec.rate_hz, spec.channels)
        paces = self._heard_only and scope.kind is ScopeKind.LOOP
        sound = SoundOutput(stream, self._state, fanout, paces)
        self._sounds[spec.name] = sound
        scope.open(ScopeKind.STREAM, spec.name).on_cancel(sound.end)
        return sound

    def add_voice(self, speech: Speech, scope: CancelScope, failed: Callable[[str], None]) -> Voice:
        """Speak the first text stream, of which there must be one; before `start`.

        Args:
            speech: what speaks.
            scope: cancelling it ends the stream.
            failed: told each time that a phrase could not be spoken.
        """
        shape = speech.shape
        spec = StreamSpec(
            VOICE, StreamKind.AUDIO, rate_hz=float(shape.rate_hz), channels=shape.channels
        )
        sound = self.add_sound(spec, scope)
        voice = Voice(sound, speech, self._state.session, failed, follows=bool(self._videos))
        self.texts[0].voice = voice
        for video in self.videos[:1]:
            video.voice = voice
        return voice

    def __iter__(self) -> Iterator[Output]:
        yield from self._videos.values()
        yield from self._sounds.values()

    @property
    def videos(self) -> tuple[VideoOutput, ...]:
        """The video streams, the program's first one first."""
        return tuple(self._videos.values())

    @property
    def sounds(self) -> tuple[SoundOutput, ...]:
        """The audio streams."""
        return tuple(self._sounds.values())

    @property
    def texts(self) -> tuple[TextOutput, ...]:
        """The text streams."""
        return tuple(self._texts.values())

    def text(self, name: str) -> TextOutput:
        """Return the text stream of that name.

        Raises:
            CommandError: there is none.
        """
        if name not in self._texts:
            raise _unknown(self._texts)
        return self._texts[name]

    @property
    def have_unshown(self) -> bool:
        """Whether frames wait for the first to come."""
        return any(output.has_unshown for output in self)

    def video(self, name: str) -> VideoOutput:
        """Return the video stream of that name.

        Raises:
            CommandError: there is none.
        """
        if name not in self._videos:
            raise _unknown(self._videos)
        return self._videos[name]

    def sound(self, name: str) -> SoundOutput:
        """Return the audio stream of that name.

        Raises:
            CommandError: there is none.
        """
        if name not in self._sounds:
            raise _unknown(self._sounds)
        return self._sounds[name]

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Run the encoders as children of the session, which ends when one of them fails."""
        for output in self:
            tasks.create_task(output.fanout.run(), name=f"encode {output.stream.name}")

    async def drain(self) -> None:
        """Return once everything published is in the outboxes. Safe to cancel."""
        for output in self:
            await output.fanout.drain()


def _unknown(streams: Iterable[str]) -> CommandError:
    known = ", ".join(streams) or "none"
    return CommandError(ErrorCode.UNKNOWN_STREAM, f"no such stream; known: {known}", field="stream")


def _chunk(stream: str, frame: MediaFrame) -> MediaChunk:
    tag, encoded = frame.tag, frame.encoded
    return MediaChunk(
        stream=stream,
        index=0,  # given when it is sent
        pts_us=tag.pts_us,
        duration_us=tag.duration_us,
        key=encoded.key,
        final=tag.final,
        chunk=tag.chunk,
        frame=tag.frame,
        last=tag.last,
        step=tag.step,
        discontinuity=tag.discontinuity,
        dropped=frame.dropped,
        size_bytes=len(encoded.data),
        data=encoded.data,
    )


@lru_cache(maxsize=256)
def _media_init(stream: str, rate_hz: float, format: StreamFormat, seed: int) -> MediaInit:
    return MediaInit(
        stream=stream,
        kind="video",
        codec=format.codec,
        container=format.container.value,
        width=format.width,
        height=format.height,
        rate_hz=rate_hz,
        seed=seed,
    )
