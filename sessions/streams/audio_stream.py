"""One audio stream of a session: from sound to the outboxes of its listeners."""

from functools import lru_cache

from reverie.engine.emissions import SamplesOut
from reverie.media import AudioFanout, AudioSubscription, SoundFormat, SoundPacket, SoundTag
from reverie.sessions.attachments.attachment import Attachment
from reverie.sessions.protocol.media_events import MediaChunk, MediaInit
from reverie.sessions.state.session_state import SessionState, StreamState
from reverie.sessions.streams.media_stream import MediaStream

UNHEARD_PIECES = 32
"""Kept for the first attachment; generation stops at a chunk's end while no client watches."""


class AudioStream(MediaStream[AudioFanout, AudioSubscription, SamplesOut]):
    """Says whose sound it is; the fan-out encodes it."""

    def __init__(
        self,
        stream: StreamState,
        session: SessionState,
        fanout: AudioFanout,
        paces: bool = False,
    ) -> None:
        """Encode nothing yet.

        Args:
            stream: what is told of it.
            session: the session that it belongs to.
            fanout: encodes; of the stream's shape.
            paces: hearing it paces the generation, because the program has no pictures.
        """
        super().__init__(stream, session, fanout, UNHEARD_PIECES)
        self._paces = paces

    def publish(self, out: SamplesOut) -> None:
        """Hand sound to the encoders, or keep it for the first attachment."""
        self._encode_or_keep(out)
        self.stream.put_out(out.chunk, out.pts_us, out.pts_us + out.duration_us)
        self.stream.frames += len(out.samples)

    def _encode(self, out: SamplesOut) -> None:
        tag = SoundTag(out.pts_us, out.chunk, out.step, out.discontinuity, last=self._paces)
        self.fanout.publish(out.samples, tag)

    def _subscribe(self, attachment: Attachment) -> AudioSubscription | None:
        codec = attachment.options.audio
        if codec is None:
            return None

        def deliver(packet: SoundPacket) -> None:
            attachment.outbox.put_frame(self._init(packet.format), self._chunk(packet))

        return self.fanout.subscribe(codec, deliver)

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
