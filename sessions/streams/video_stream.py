"""One video stream of a session: from a chunk's frames to the outboxes of those who watch."""

from collections import deque
from functools import lru_cache

from reverie.engine.emissions import FramesOut
from reverie.media import (
    FrameTag,
    MediaFrame,
    Size,
    StreamFormat,
    VideoFanout,
    VideoSubscription,
)
from reverie.sessions.attachments.attachment import Attachment
from reverie.sessions.protocol.events import MediaChunk, MediaInit
from reverie.sessions.state.session_state import SessionState, StreamState
from reverie.sessions.streams.speech_stream import SpeechStream

UNSHOWN_CHUNKS = 4
"""Kept for the first to come; generation stops at a chunk's end while nobody watches."""


class VideoStream:
    """Encoding is the fan-out's; this room says whose frames they are."""

    def __init__(self, stream: StreamState, session: SessionState, fanout: VideoFanout) -> None:
        self.stream = stream
        self.fanout = fanout
        self._session = session
        self._subscriptions: dict[int, VideoSubscription] = {}
        self._watchers: dict[int, Attachment] = {}
        # What was made before anybody came, so that whoever comes first sees the beginning.
        self._unshown: deque[FramesOut] | None = deque(maxlen=UNSHOWN_CHUNKS)
        self.voice: SpeechStream | None = None  # keeps pace with these pictures

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
        self.stream.frames += len(out.frames)
        self.stream.newest_us = out.pts_us + (len(out.frames) - 1) * out.duration_us
        self.stream.put_out(out.chunk, out.pts_us, self.stream.newest_us + out.duration_us)
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


def _chunk(stream: str, frame: MediaFrame) -> MediaChunk:
    tag, encoded = frame.tag, frame.encoded
    return MediaChunk(
        stream=stream,
        index=0,  # given when it is sent
        pts_us=tag.pts_us,
        duration_us=tag.duration_us,
        key=encoded.key,
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
