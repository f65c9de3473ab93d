"""The encoded output of a session for recordings and clips.

It shares the encoding with the viewers: one subscription to the H.264 of the pictures and one to
each Opus stream, however many consumers there are.
"""

from typing import Protocol

from reverie.media import (
    AudioCodec,
    AudioSubscription,
    Codec,
    MediaFrame,
    SoundPacket,
    VideoSubscription,
)
from reverie.sessions.streams.output_streams import OutputStreams

KEY_EVERY_US = 2_000_000
"""A key frame comes at least this often, so that a player can seek and a clip can begin."""


class TapConsumer(Protocol):
    """Takes encoded media on the event loop. Never waits."""

    def picture(self, media: MediaFrame) -> None:
        """Take a frame of the first video stream."""

    def sound(self, stream: str, packet: SoundPacket) -> None:
        """Take a packet of an audio stream."""


class MediaTap:
    """Subscribed for as long as there are consumers."""

    def __init__(self, outputs: OutputStreams) -> None:
        self._outputs = outputs
        self._consumers: list[TapConsumer] = []
        self._video: VideoSubscription | None = None
        self._sounds: list[AudioSubscription] = []
        self._keyed_us: int | None = None

    @property
    def has_pictures(self) -> bool:
        """Whether there is a video stream that has not ended."""
        return any(video.stream.reason is None for video in self._outputs.videos[:1])

    @property
    def sounds(self) -> tuple[tuple[str, int], ...]:
        """The audio streams, each with its channels."""
        return tuple(
            (sound.stream.name, sound.fanout.shape.channels) for sound in self._outputs.sounds
        )

    def add(self, consumer: TapConsumer) -> None:
        """Add a consumer; its first key frame comes soon. There must be pictures."""
        self._consumers.append(consumer)
        if self._video is None:
            self._open()
        else:
            self._video.request_key_frame()

    def remove(self, consumer: TapConsumer) -> None:
        """Remove a consumer; idempotent."""
        if consumer in self._consumers:
            self._consumers.remove(consumer)
        if not self._consumers:
            self._close()

    def _open(self) -> None:
        video = self._outputs.videos[0]
        self._keyed_us = None
        self._video = video.fanout.subscribe(Codec.H264, self._picture, follows=True)
        for sound in self._outputs.sounds:
            name = sound.stream.name

            def deliver(packet: SoundPacket, name: str = name) -> None:
                for consumer in tuple(self._consumers):
                    consumer.sound(name, packet)

            self._sounds.append(sound.fanout.subscribe(AudioCodec.OPUS, deliver))

    def _close(self) -> None:
        if self._video is not None:
            self._video.close()
            self._video = None
        for sound in self._sounds:
            sound.close()
        self._sounds.clear()

    def _picture(self, media: MediaFrame) -> None:
        pts_us = media.tag.pts_us
        if media.encoded.key or self._keyed_us is None:
            self._keyed_us = pts_us
        elif pts_us - self._keyed_us >= KEY_EVERY_US and self._video is not None:
            self._video.request_key_frame()
        for consumer in tuple(self._consumers):
            consumer.picture(media)
