"""One video stream of a session: from a chunk's frames to the outboxes of its watchers."""

from dataclasses import asdict
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
from reverie.sessions.attachments.attachment import Attachment, Role
from reverie.sessions.protocol.media_events import MediaChunk, MediaInit
from reverie.sessions.state.session_state import SessionState, StreamState
from reverie.sessions.streams.media_stream import MediaStream
from reverie.sessions.streams.speech_stream import SpeechStream

UNSHOWN_CHUNKS = 4
"""Kept for the first attachment; generation stops at a chunk's end while no client watches."""


class VideoStream(MediaStream[VideoFanout, VideoSubscription, FramesOut]):
    """Says whose frames they are; the fan-out encodes them."""

    def __init__(self, stream: StreamState, session: SessionState, fanout: VideoFanout) -> None:
        super().__init__(stream, session, fanout, UNSHOWN_CHUNKS)
        self.voice: SpeechStream | None = None  # keeps pace with these pictures

    def publish(self, out: FramesOut) -> None:
        """Hand a chunk's frames to the encoders, or keep them for the first attachment.

        Raises:
            UnsupportedPictureError: no codec takes such frames.
        """
        for frame in out.frames:
            Size.of(frame)
        self._encode_or_keep(out)
        self.stream.frames += len(out.frames)
        header = out.header
        self.stream.newest_us = out.end_us - header.duration_us
        self.stream.put_out(header.chunk, header.pts_us, out.end_us)
        if self.voice is not None:
            self.voice.pictures(out.end_us)

    def show_again(self, attachment: Attachment) -> None:
        """Put the newest picture into an outbox again; a key frame follows."""
        if attachment.key in self._subscriptions:
            self.hide(attachment)
            self.show(attachment)

    def request_key_frame(self, attachment: Attachment) -> None:
        """Have a frame sent soon that can be decoded without earlier ones."""
        subscription = self._subscriptions.get(attachment.key)
        if subscription is not None:
            subscription.request_key_frame()

    def line_changed(self, attachment: Attachment) -> None:
        """Encode for what the attachment's line takes now."""
        subscription = self._subscriptions.get(attachment.key)
        if subscription is not None:
            subscription.limit(attachment.bits_per_s)
            subscription.hold(attachment.held)

    def _encode(self, out: FramesOut) -> None:
        count = len(out.frames)
        for index, frame in enumerate(out.frames):
            header = out.header.after(index)
            tag = FrameTag(
                pts_us=header.pts_us,
                duration_us=header.duration_us,
                chunk=header.chunk,
                frame=index,
                last=index == count - 1,
                step=header.step,
                discontinuity=header.discontinuity,
            )
            self.fanout.publish(frame, tag)

    def _subscribe(self, attachment: Attachment) -> VideoSubscription:
        def deliver(frame: MediaFrame) -> None:
            init = self._init(frame.encoded.format)
            attachment.outbox.put_frame(init, _chunk(self.stream.name, frame))

        subscription = self.fanout.subscribe(
            attachment.options.codec, deliver, leads=attachment.role is Role.DRIVER
        )
        subscription.limit(attachment.bits_per_s)
        subscription.hold(attachment.held)
        return subscription

    def _init(self, format: StreamFormat) -> MediaInit:
        return _media_init(self.stream.name, self.stream.rate_hz, format, self._session.seed)


def _chunk(stream: str, frame: MediaFrame) -> MediaChunk:
    tag, encoded = frame.tag, frame.encoded
    return MediaChunk(
        stream=stream,
        index=0,  # given when it is sent
        key=encoded.key,
        dropped=frame.dropped,
        size_bytes=len(encoded.data),
        data=encoded.data,
        **asdict(tag),
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
