"""From frames to every viewer: encoded once per codec and size, in a thread, delivered in order.

    publish -> DropOldestFrames -> encoding thread, one Rendition a codec and size -> subscriptions

While the lines of all watchers of a rendition are behind, its frames wait unencoded, and those that
are late give way to newer ones: to leave out a frame then costs no key frame.

`publish`, `subscribe`, `flush` and `close` return at once and belong to the event loop; `run` is a
child of the session's TaskGroup and ends it by raising when an encoder fails, so that a stream
either moves or ends with a reason.
"""

from collections import deque
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from reverie.media.clock import Clock, MonotonicClock
from reverie.media.encoding_loop import EncodingLoop
from reverie.media.pacing import PacketPacer
from reverie.media.types import Codec, EncodedFrame, FrameTag, MediaFrame, Picture, Size
from reverie.media.video.encoders import OpenEncoder, open_encoder
from reverie.media.video.frame_queue import DropOldestFrames, QueuedFrame
from reverie.media.video.rendition import Rendition
from reverie.media.video.subscription import Deliver, VideoSubscription

LATE_US = 100_000
"""A frame that waits for so long after it was due gives way to a newer one."""


@dataclass(frozen=True, slots=True)
class _Job:
    rendition: Rendition
    queued: QueuedFrame
    force_key: bool
    bits_per_s: int | None
    recipients: tuple[VideoSubscription, ...]
    held: tuple[VideoSubscription, ...]  # of the watchers; they skip the frame


@dataclass(frozen=True, slots=True)
class _StillRequest:
    rendition: Rendition
    recipient: VideoSubscription


class VideoFanout:
    """One video stream of one session. For one event loop; not thread-safe."""

    def __init__(
        self,
        rate_hz: float,
        *,
        queue_frames: int = 64,
        encode_limit_s: float = 10.0,
        open_encoder: OpenEncoder = open_encoder,
        clock: Clock | None = None,
    ) -> None:
        """Start nothing yet: `run` does.

        Args:
            rate_hz: frames a second of media time.
            queue_frames: frames that may wait for the encoders; the oldest is dropped.
            encode_limit_s: an encoder that takes longer over a frame counts as failed.
            open_encoder: makes encoders; for tests.
            clock: the machine's by default, for tests.
        """
        self._clock = clock or MonotonicClock()
        self._pacer = PacketPacer()
        self._queue_frames = queue_frames
        self._rate_hz = rate_hz
        self._open_encoder = open_encoder
        self._queue = DropOldestFrames(queue_frames)
        self._stills: deque[_StillRequest] = deque()
        self._renditions: dict[tuple[Codec, Size | None], Rendition] = {}
        self._retired: list[
            Rendition
        ] = []  # renditions without viewers, which the thread will free
        self._newest: QueuedFrame | None = None  # encoded last; sent first to a new viewer
        self._flushes = 0
        self._loop = EncodingLoop("encode", "an encoder", encode_limit_s)

    @property
    def dropped(self) -> int:
        """Frames lost because the encoders could not keep up."""
        return self._queue.dropped

    @property
    def watchers(self) -> int:
        """How many subscriptions are open."""
        return sum(len(rendition.subscriptions) for rendition in self._renditions.values())

    def subscribe(
        self,
        codec: Codec,
        deliver: Deliver,
        size: Size | None = None,
        *,
        follows: bool = False,
        leads: bool = False,
    ) -> VideoSubscription:
        """Begin to watch.

        The newest picture comes at once, even while nothing is published; the stream continues
        with a key frame. Before `run` and after `close` nothing is delivered.

        Args:
            deliver: called with each frame on the event loop. Each frame names its format.
            size: what to scale to; None keeps the size of the frames.
            follows: take what is made for others, such as a recording does: while all others are
                held, nothing is made for this one.
            leads: what it can take is the least that is made, whatever the others can.
        """
        rendition = self._renditions.get((codec, size))
        if rendition is None:
            rendition = Rendition(
                codec, size, self._rate_hz, self._open_encoder, self._queue_frames
            )
            self._renditions[codec, size] = rendition
        found = rendition

        def leave(subscription: VideoSubscription) -> None:
            found.subscriptions.remove(subscription)
            found.limit(subscription, None)
            if not found.subscriptions:
                self._retired.append(self._renditions.pop((codec, size)))
                self._loop.stir()

        def resume(subscription: VideoSubscription) -> None:
            if subscription.has_gap:
                found.request_key(rarely=True)
                self._stills.append(_StillRequest(found, subscription))
            self._loop.stir()

        subscription = VideoSubscription(
            deliver,
            rendition.request_key,
            leave,
            rendition.limit,
            resume,
            follows=follows,
            leads=leads,
        )
        rendition.subscriptions.append(subscription)
        rendition.force_key()
        self._stills.append(_StillRequest(rendition, subscription))
        self._loop.stir()
        return subscription

    def publish(self, frame_HWC: Picture, tag: FrameTag) -> None:
        """Publish the next frame.

        A writable one is copied, so that its buffer can be reused; a read-only one is kept.

        Never waits: when the encoders fall behind, the oldest frame is lost, and the next one
        counts it. After `close` it does nothing.

        Raises:
            UnsupportedPictureError: the frame is not uint8 [H, W, 3] of a size that can be shown.
        """
        Size.of(frame_HWC)
        if not self._loop.closed:
            due_us = self._pacer.due_us(tag.chunk, tag.duration_us, self._clock.now_us())
            kept_HWC = frame_HWC.copy() if frame_HWC.flags.writeable else frame_HWC
            self._queue.put(kept_HWC, tag, due_us)
            self._loop.stir()

    def flush(self) -> None:
        """Drop every frame that was not delivered yet; the next one becomes a key frame.

        Once it has returned, nothing published before it is delivered, whatever a thread is doing.
        """
        self._flushes += 1
        self._queue.clear()
        self._pacer.restart()
        self._newest = None
        for rendition in self._renditions.values():
            rendition.waiting.clear()
            rendition.force_key()

    async def drain(self) -> None:
        """Return once everything published has been delivered, or `run` has ended.

        Safe to cancel. Waits for as long as frames keep coming.
        """
        await self._loop.drain()

    def close(self) -> None:
        """End `run`. Waiting frames are not delivered: `drain` first. Idempotent."""
        self._loop.close()

    async def run(self) -> None:
        """Encode and deliver until `close`. Run it once; cancelling it is closing.

        Raises:
            MediaError: an encoder failed, took too long or refuses the picture.
        """
        try:
            await self._loop.run(self._next_work)
        finally:
            retired = [*self._retired, *self._renditions.values()]
            self._loop.shut_down(lambda: _close_all(retired))

    def _next_work(self) -> Coroutine[Any, Any, None] | None:
        if self._retired:
            retired, self._retired = self._retired, []
            return self._loop.in_thread(lambda: _close_all(retired))
        if self._stills:
            return self._send_still(self._stills.popleft())
        ready = self._ready()
        while self._queue and not ready:
            self._newest = self._queue.take()
            for rendition in self._renditions.values():
                rendition.waiting.add(self._newest)
            ready = self._ready()
        return self._send(ready) if ready else None

    def _ready(self) -> list[Rendition]:
        return [each for each in self._renditions.values() if each.is_ready]

    async def _send(self, ready: list[Rendition]) -> None:
        jobs = [self._job(rendition) for rendition in ready]
        flushes = self._flushes
        encoded = await self._loop.in_thread(lambda: [_encoded(job) for job in jobs])
        if flushes != self._flushes:
            return
        for job, frame in zip(jobs, encoded, strict=True):
            media = MediaFrame(frame, job.queued.tag, job.queued.dropped)
            for recipient in job.recipients:
                recipient.hand_over(media)
            for passed in job.held:
                passed.pass_over(media)

    def _job(self, rendition: Rendition) -> _Job:
        rendition.waiting.shed(self._clock.now_us() - LATE_US)
        queued = rendition.waiting.take()
        return _Job(
            rendition,
            queued,
            rendition.take_key_frame_request(queued.tag),
            rendition.take_limit(queued.tag),
            tuple(each for each in rendition.subscriptions if not each.held),
            tuple(each for each in rendition.subscriptions if each.held),
        )

    async def _send_still(self, request: _StillRequest) -> None:
        newest, flushes = self._newest, self._flushes
        if newest is None or self._queue or request.rendition.waiting:
            return  # the stream will send a picture now
        frame = await self._loop.in_thread(
            lambda: request.rendition.still(newest.frame_HWC, newest.tag.pts_us)
        )
        if flushes == self._flushes:
            request.recipient.hand_over_still(MediaFrame(frame, newest.tag))


def _encoded(job: _Job) -> EncodedFrame:
    queued = job.queued
    return job.rendition.encode(queued.frame_HWC, queued.tag.pts_us, job.force_key, job.bits_per_s)


def _close_all(renditions: list[Rendition]) -> None:
    for rendition in renditions:
        rendition.close()
