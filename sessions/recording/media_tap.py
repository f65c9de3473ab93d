"""What a session puts out, encoded, for consumers that are no viewers: recordings and clips.

It takes part in the encoding that viewers have already: one subscription to the pictures' H.264 and
one to each Opus stream, however many consumers there are.
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
"""Key frames come this often at least, so that a player can seek and a clip can begin."""


class TapConsumer(Protocol):
    """Takes what comes, at once, on the event loop."""

    def picture(self, media: MediaFrame) -> None:
        """Take a frame of the first video stream."""

    def sound(self, stream: str, packet: SoundPacket) -> None:
        """Take a packet of an audio stream."""


class MediaTap:
    """Open as long as there are consumers."""

    def __init__(self, outputs: OutputStreams) -> None:
        self._outputs = outputs
        self._consumers: list[TapConsumer] = []
        self._video: VideoSubscription | None = None
        self._sounds: list[AudioSubscription] = []
        self._keyed_us: int | None = None

    @property
    def has_pictures(self) -> bool:
        """Whether there is a video stream that goes on."""
        return any(video.stream.reason is None for video in self._outputs.videos[:1])

    @property
    def sounds(self) -> tuple[tuple[str, int], ...]:
        """The audio streams, each with its channels."""
        return tuple(
            (sound.stream.name, sound.fanout.shape.channels) for sound in self._outputs.sounds
        )

    def add(self, consumer: TapConsumer) -> None:
        """Feed a consumer too; its first key frame comes soon. There must be pictures."""
        self._consumers.append(consumer)
        if self._video is None:
            self._open()
        else:
            self._video.request_key_frame()

    def remove(self, consumer: TapConsumer) -> None:
        """Feed a consumer no more. Removing twice is removing once."""
        if consumer in self._consumers:
            self._consumers.remove(consumer)
        if not self._consumers:
            self._close()

    def _open(self) -> None:
        video = self._outputs.videos[0]
        self._keyed_us = None
        self._video = video.fanout.subscribe(Codec.H264, self._picture)
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
