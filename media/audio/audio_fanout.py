"""From sound to every listener: encoded once per codec, in a thread, delivered in order.

    publish -> DropOldestSound -> encoding thread, one SoundRendition a codec -> subscriptions

The counterpart of `VideoFanout`: `publish`, `subscribe`, `flush` and `close` return at once and
belong to the event loop; `run` is a child of the session's TaskGroup and ends it when an encoder
fails.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from reverie.media.audio.sound import (
    AudioCodec,
    DeliverSound,
    Sound,
    SoundPacket,
    SoundShape,
    SoundTag,
)
from reverie.media.audio.sound_queue import DropOldestSound
from reverie.media.audio.sound_rendition import OpenSoundEncoder, SoundRendition, open_sound_encoder
from reverie.media.encoding_loop import EncodingLoop


class AudioSubscription:
    """Hands packets to one listener, in order, from the moment that it subscribed."""

    def __init__(self, deliver: DeliverSound, leave: Callable[["AudioSubscription"], None]) -> None:
        """Made by `AudioFanout.subscribe`."""
        self._deliver = deliver
        self._leave = leave
        self._closed = False

    def close(self) -> None:
        """Stop; nothing is delivered afterwards. Idempotent."""
        if not self._closed:
            self._closed = True
            self._leave(self)

    def hand_over(self, packet: SoundPacket) -> None:
        """Deliver a packet, unless the listener has left."""
        if not self._closed:
            self._deliver(packet)


@dataclass(slots=True)
class _Channel:
    """One codec and its listeners."""

    rendition: SoundRendition
    subscriptions: list[AudioSubscription] = field(default_factory=list)
    flushes: int = 0  # losses of the fan-out that the rendition has counted


@dataclass(frozen=True, slots=True)
class _Job:
    rendition: SoundRendition
    cut: bool
    recipients: tuple[AudioSubscription, ...]


class AudioFanout:
    """One audio stream of one session. For one event loop; not thread-safe."""

    def __init__(
        self,
        rate_hz: float,
        channels: int,
        *,
        queue_s: float = 5.0,
        encode_limit_s: float = 10.0,
        open_encoder: OpenSoundEncoder = open_sound_encoder,
    ) -> None:
        """Start nothing yet: `run` does.

        Args:
            rate_hz: samples a second, 8000 to 96,000.
            channels: 1 or 2.
            queue_s: sound that may wait for the encoders; the oldest is dropped.
            encode_limit_s: an encoder that takes longer over a piece counts as failed.
            open_encoder: makes encoders; for tests.
        """
        self.shape = SoundShape(round(rate_hz), channels)
        self._open_encoder = open_encoder
        self._queue = DropOldestSound(self.shape, round(queue_s * 1e6))
        self._channels: dict[AudioCodec, _Channel] = {}
        self._flushes = 0
        self._finish = False  # the last packet is to be filled with silence
        self._loop = EncodingLoop("encode-sound", "a sound encoder", encode_limit_s)

    @property
    def dropped(self) -> int:
        """Packets lost because the encoders could not keep up."""
        return self._queue.dropped

    @property
    def listeners(self) -> int:
        """How many subscriptions are open."""
        return sum(len(channel.subscriptions) for channel in self._channels.values())

    def subscribe(self, codec: AudioCodec, deliver: DeliverSound) -> AudioSubscription:
        """Begin to listen; earlier sound is not repeated.

        Args:
            deliver: called with each packet on the event loop. Each packet names its format.
        """
        channel = self._channels.get(codec)
        if channel is None:
            rendition = SoundRendition(codec, self.shape, self._open_encoder)
            channel = _Channel(rendition, flushes=self._flushes)
            self._channels[codec] = channel
        found = channel

        def leave(subscription: AudioSubscription) -> None:
            found.subscriptions.remove(subscription)
            if not found.subscriptions:
                del self._channels[codec]

        subscription = AudioSubscription(deliver, leave)
        channel.subscriptions.append(subscription)
        return subscription

    def publish(self, samples_NC: Sound, tag: SoundTag) -> None:
        """Publish the next sound. It must not be changed afterwards.

        Never waits: when the encoders fall behind, the oldest sound is lost, and the next packet
        counts it. After `close` it does nothing.

        Raises:
            UnsupportedSoundError: the samples are not of the stream's shape.
        """
        self.shape.check(samples_NC)
        if not self._loop.closed and len(samples_NC):
            self._queue.put(samples_NC, tag)
            self._loop.stir()

    def finish(self) -> None:
        """End the sound for now: its last packet is filled with silence."""
        self._finish = True
        self._loop.stir()

    def flush(self) -> None:
        """Drop all sound that was not delivered yet.

        Once it has returned, nothing published before it is delivered, whatever a thread is doing.
        """
        self._flushes += 1
        self._finish = False
        self._queue.clear()

    async def drain(self) -> None:
        """Return once everything published has been delivered, or `run` has ended.

        Safe to cancel. Less than a packet may still wait: `finish` first to have that as well.
        """
        await self._loop.drain()

    def close(self) -> None:
        """End `run`. Waiting sound is not delivered: `drain` first. Idempotent."""
        self._loop.close()

    async def run(self) -> None:
        """Encode and deliver until `close`. Run it once; cancelling it is closing.

        Raises:
            MediaError: an encoder failed or took too long.
        """
        try:
            await self._loop.run(self._next_work)
        finally:
            self._loop.shut_down()

    def _next_work(self) -> Coroutine[Any, Any, None] | None:
        if self._queue:
            piece = self._queue.take()
            return self._send(lambda rendition: rendition.encode(piece))
        if self._finish:
            self._finish = False
            return self._send(lambda rendition: rendition.finish())
        return None

    async def _send(self, work: Callable[[SoundRendition], list[SoundPacket]]) -> None:
        flushes, jobs = self._flushes, []
        for channel in self._channels.values():
            cut, channel.flushes = channel.flushes != flushes, flushes
            jobs.append(_Job(channel.rendition, cut, tuple(channel.subscriptions)))
        if not jobs:
            return
        encoded = await self._loop.in_thread(lambda: [_run(job, work) for job in jobs])
        if flushes != self._flushes:
            return
        for job, packets in zip(jobs, encoded, strict=True):
            for packet in packets:
                for recipient in job.recipients:
                    recipient.hand_over(packet)


def _run(job: _Job, work: Callable[[SoundRendition], list[SoundPacket]]) -> list[SoundPacket]:
    if job.cut:
        job.rendition.cut()
    return work(job.rendition)
