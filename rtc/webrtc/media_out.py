"""The RTP media that one peer is sent: pictures and sound of its attachment."""

import asyncio
from collections.abc import Callable

from reverie.media import AudioCodec, Codec
from reverie.rtc.metrics import Metrics
from reverie.rtc.webrtc.aiortc_seams import on_line_reports, round_trip_s
from reverie.rtc.webrtc.audio_out import AudioOut
from reverie.rtc.webrtc.lost_playheads import LostPlayheads
from reverie.rtc.webrtc.negotiation import NegotiatedPeer
from reverie.rtc.webrtc.packet_track import sender_failed
from reverie.rtc.webrtc.tail_loss_probe import TailLossProbe
from reverie.rtc.webrtc.video_out import VideoOut
from reverie.rtc.webrtc_options import WebRtcOptions
from reverie.sessions import Attachment, ServerSession
from reverie.sessions.protocol.commands import Playhead, RequestKeyFrame
from reverie.sessions.protocol.events import AnyEvent, SessionInterrupted
from reverie.sessions.protocol.media_events import MediaChunk, MediaInit, TextDelta
from reverie.sessions.streams.output_streams import VOICE


class MediaOut:
    """Sends the media of an attachment's events as RTP, and returns the events without it."""

    def __init__(
        self,
        negotiated: NegotiatedPeer,
        now_us: Callable[[], int],
        options: WebRtcOptions,
        metrics: Metrics,
    ) -> None:
        """Replace the tracks of the senders; nothing is sent before `begin`."""
        self._negotiated = negotiated
        self._now_us = now_us
        self._options = options
        self._metrics = metrics
        self._probe = TailLossProbe()
        self._playheads = LostPlayheads()
        self._kinds: dict[str, str] = {}  # of the streams that have begun
        self._trip_s: float | None = None
        self._refresh: Callable[[], None] | None = None
        video, audio = negotiated.video, negotiated.audio
        self._video = VideoOut(video, now_us, options, metrics) if video else None
        self._audio = AudioOut(audio, now_us) if audio else None

    @property
    def codec(self) -> Codec:
        """The codec of pictures."""
        return self._negotiated.codec or Codec.VP8

    @property
    def audio(self) -> AudioCodec | None:
        """The codec of sound; None: the peer gets no sound."""
        return AudioCodec.OPUS if self._audio is not None else None

    @property
    def lossy(self) -> bool:
        """Whether the line loses so much that only the most needed is sent."""
        return self._playheads.lossy

    def begin(self, server_session: ServerSession, attachment: Attachment, *, silent: bool) -> None:
        """Act on the reports of the receiver from now on.

        Args:
            silent: the peer sends no playheads, so media that was sent to it counts as seen.
        """
        sender = self._negotiated.video or self._negotiated.audio
        if sender is not None and not silent:
            attachment.round_trip.expected = True
            on_line_reports(
                sender,
                lambda trip_s: attachment.note_round_trip(round(trip_s * 1e6)),
                attachment.note_lost,
            )
        if self._video is None:
            return
        shown = self._submit_playhead if silent else self._note_sent
        self._video.shown = lambda chunk: shown(attachment, chunk)
        self._video.lost = self._note_lost
        self._video.request_key = lambda: self._request_key(attachment)
        self._video.refresh = self._refresh = lambda: server_session.show_again(attachment)
        self._video.limit = attachment.limit_video
        self._video.limit(self._options.max_bitrate)

    async def pass_on(self, event: AnyEvent) -> AnyEvent | None:
        """Send the media of an event; return the event to tell, None when the media was skipped.

        Raises:
            PeerEndedError: the sender has failed.
        """
        if isinstance(event, MediaInit):
            self._kinds[event.stream] = event.kind
            return event.model_copy(update={"container": "rtp"})
        if isinstance(event, MediaChunk):
            return await self._send(event)
        if isinstance(event, SessionInterrupted):
            for out in (self._video, self._audio):
                if out is not None:
                    out.cut()
        if isinstance(event, TextDelta) and event.cut and VOICE in self._kinds and self._audio:
            self._audio.cut()  # the rest of a cut answer is not played
        return event

    def seen(self, chunk: int) -> None:
        """Note the chunk that the peer has seen."""
        self._probe.seen(chunk)
        self._playheads.heard(chunk, self._now_us())

    def check(self, now_s: float) -> None:
        """Check what no event reports; called a few times a second.

        Raises:
            PeerEndedError: a sender has failed.
        """
        for out in (self._video, self._audio):
            if out is not None and out.track.readyState == "ended":
                raise sender_failed()
        self._note_round_trip()
        if self._refresh is not None and self._probe.due(now_s):
            self._refresh()

    async def _send(self, chunk: MediaChunk) -> MediaChunk | None:
        out = self._audio if self._kinds.get(chunk.stream) == "audio" else self._video
        sent = await out.send(chunk) if out is not None else None
        if sent is not None:
            self._metrics.frames.inc()
            self._metrics.dropped.inc(sent.dropped)
            self._metrics.sent_bytes.inc(sent.size_bytes)
        return sent

    def _note_sent(self, attachment: Attachment, chunk: MediaChunk) -> None:
        if not chunk.last:
            return
        self._probe.sent(chunk.chunk, self._now_us() / 1e6)
        if self._playheads.lost:
            wait_us = self._playheads.wait_us(round((self._trip_s or 0.0) * 1e6))
            asyncio.get_running_loop().call_later(wait_us / 1e6, self._assume, attachment, chunk)

    def _note_lost(self, fraction_lost: float) -> None:
        self._playheads.reported(fraction_lost)
        assert self._video is not None, "only a receiver of pictures reports losses of them"
        self._video.track.repeats = self._playheads.lossy

    def _assume(self, attachment: Attachment, chunk: MediaChunk) -> None:
        if self._playheads.counts(chunk.chunk, self._now_us()):
            self._probe.seen(chunk.chunk)
            self._submit_playhead(attachment, chunk)

    def _submit_playhead(self, attachment: Attachment, chunk: MediaChunk) -> None:
        if chunk.last:
            pts_us = max(0, chunk.pts_us)
            attachment.submit(Playhead(id="sent", chunk=chunk.chunk, pts_us=pts_us))

    def _request_key(self, attachment: Attachment) -> None:
        for stream, kind in self._kinds.items():
            if kind == "video":
                attachment.submit(RequestKeyFrame(id="pli", stream=stream), quiet=True)

    def _note_round_trip(self) -> None:
        sender = self._negotiated.video or self._negotiated.audio
        trip_s = round_trip_s(sender) if sender is not None else None
        if trip_s is not None and trip_s != self._trip_s:
            self._trip_s = trip_s
            self._metrics.round_trip.observe(trip_s)
