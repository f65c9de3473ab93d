"""One audio stream of a session: from sound to the outboxes of those who listen."""

from collections import deque
from functools import lru_cache

from reverie.engine.emissions import SamplesOut
from reverie.media import AudioFanout, AudioSubscription, SoundFormat, SoundPacket, SoundTag
from reverie.sessions.attachments.attachment import Attachment
from reverie.sessions.protocol.events import MediaChunk, MediaInit
from reverie.sessions.state.session_state import SessionState, StreamState

UNHEARD_PIECES = 32
"""Kept for the first to come; generation stops at a chunk's end while nobody watches."""


class AudioStream:
    """Encoding is the fan-out's; this room says whose sound it is."""

    def __init__(
        self,
        stream: StreamState,
        session: SessionState,
        fanout: AudioFanout,
        paces: bool = False,
    ) -> None:
        """Take sound for a stream.

        Args:
            stream: what is told of it.
            session: whose it is.
            fanout: encodes; of the stream's shape.
            paces: it is the only thing that can be seen or heard, so that hearing it is what paces
                the generation. Where there are pictures, they do.
        """
        self.stream = stream
        self._paces = paces
        self.fanout = fanout
        self._session = session
        self._subscriptions: dict[int, AudioSubscription] = {}
        self._listeners: dict[int, Attachment] = {}
        # What was made before anybody came, so that whoever comes first hears the beginning.
        self._unheard: deque[SamplesOut] | None = deque(maxlen=UNHEARD_PIECES)

    @property
    def has_unshown(self) -> bool:
        """Whether sound waits for the first to come."""
        return bool(self._unheard)

    def publish(self, out: SamplesOut) -> None:
        """Hand sound to the encoders, or keep it until somebody comes."""
        if self._unheard is None:
            self._encode(out)
        else:
            self._unheard.append(out)
        self.stream.put_out(out.chunk, out.pts_us, out.pts_us + out.duration_us)
        self.stream.frames += len(out.samples)

    def show(self, attachment: Attachment) -> None:
        """Begin to fill an outbox, of whoever takes sound. Showing twice is showing once.

        The first of all gets what was made so far; whoever comes later, what comes from then on.
        """
        codec = attachment.options.audio
        if attachment.key in self._subscriptions or self.stream.reason is not None:
            return
        if codec is not None:

            def deliver(packet: SoundPacket) -> None:
                attachment.outbox.put_frame(self._init(packet.format), self._chunk(packet))

            self._listeners[attachment.key] = attachment
            self._subscriptions[attachment.key] = self.fanout.subscribe(codec, deliver)
        # Somebody without ears has come: the beginning is over for everybody.
        unheard, self._unheard = self._unheard, None
        for out in unheard or ():
            self._encode(out)

    def hide(self, attachment: Attachment) -> None:
        """Stop to fill an outbox."""
        subscription = self._subscriptions.pop(attachment.key, None)
        self._listeners.pop(attachment.key, None)
        if subscription is not None:
            subscription.close()

    def cut(self, before_us: int) -> None:
        """Drop all sound before a media time, wherever it is on its way."""
        self.fanout.flush()
        if self._unheard:
            self._unheard.clear()
        for attachment in self._listeners.values():
            attachment.outbox.cut(self.stream.name, before_us)

    def end(self, reason: str) -> None:
        """End the stream for everybody; nothing of it comes afterwards."""
        self.stream.reason = reason
        for attachment in tuple(self._listeners.values()):
            attachment.outbox.complete(self.stream.name, reason)
            self.hide(attachment)
        self.fanout.close()

    def _encode(self, out: SamplesOut) -> None:
        tag = SoundTag(out.pts_us, out.chunk, out.step, out.discontinuity, last=self._paces)
        self.fanout.publish(out.samples, tag)

    def _init(self, format: SoundFormat) -> MediaInit:
        return _media_init(self.stream.name, format, self._session.seed)

    def _chunk(self, packet: SoundPacket) -> MediaChunk:
        return MediaChunk(
            stream=self.stream.name,
            index=0,  # given when it is sent
            pts_us=packet.pts_us,
            duration_us=packet.duration_us,
            key=True,
            chunk=packet.chunk,
            frame=0,
            last=packet.last,
            step=packet.step,
            discontinuity=packet.discontinuity,
            dropped=packet.dropped,
            size_bytes=len(packet.data),
            data=packet.data,
        )


@lru_cache(maxsize=256)
def _media_init(stream: str, format: SoundFormat, seed: int) -> MediaInit:
    return MediaInit(
        stream=stream,
        kind="audio",
        codec=format.codec.value,
        container="opus" if format.codec == "opus" else "raw",
        rate_hz=float(format.rate_hz),
        channels=format.channels,
        seed=seed,
    )
