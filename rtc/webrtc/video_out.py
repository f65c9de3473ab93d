"""The pictures of one peer: when each is sent, which are skipped, and the receiver's reports."""

from collections.abc import Callable

from aiortc import RTCRtpSender

from reverie.media.pacing import PacketPacer
from reverie.rtc.metrics import Metrics
from reverie.rtc.webrtc.aiortc_seams import on_key_request, on_reports
from reverie.rtc.webrtc.packet_track import PacedPacket, PacketTrack
from reverie.rtc.webrtc.rtp_time import DueTime
from reverie.rtc.webrtc_options import WebRtcOptions
from reverie.sessions.protocol.media_events import MediaChunk

VIDEO_CLOCK_HZ = 90_000

MAX_FRAMES = 64
"""Frames that may wait until they are due; more are skipped, up to the next key frame."""

STILL_US = 300_000
"""After so long without a frame, the next one may not come for a while."""

REFRESH_INTERVAL_US = 1_000_000


class BitrateBudget:
    """The bitrate budget of a receiver with less bandwidth than the stream.

    All receivers get one stream, at the rate that the median can take. A receiver below the median
    is sent only as much as its estimate allows, with whole runs of frames left out.
    """

    def __init__(self, slack_s: float = 1.0) -> None:
        """Allow a burst of `slack_s` at any rate."""
        self._slack_s = slack_s
        self._rate: int | None = None
        self._bits = 0.0
        self._filled_us = 0

    def limit(self, bits_per_s: int) -> None:
        """Set a new estimate."""
        if self._rate is None:
            self._bits = bits_per_s * self._slack_s
        self._rate = bits_per_s

    def spend(self, size_bytes: int, now_us: int) -> bool:
        """Tell whether a frame may be sent now, and count it."""
        if self._rate is None:
            return True
        elapsed_s = max(0, now_us - self._filled_us) / 1e6
        most = self._rate * self._slack_s
        self._bits = min(most, self._bits + elapsed_s * self._rate)
        self._filled_us = now_us
        if self._bits <= 0:
            return False
        self._bits -= size_bytes * 8
        return True

    @property
    def recovered(self) -> bool:
        """Whether the budget is enough for a key frame and its successors."""
        return self._rate is None or self._bits >= self._rate * self._slack_s / 2


class VideoOut:
    """Feeds one sender with the chunks of one stream."""

    def __init__(
        self,
        sender: RTCRtpSender,
        now_us: Callable[[], int],
        options: WebRtcOptions,
        metrics: Metrics,
    ) -> None:
        """Replace the sender's track.

        The peer sets the callbacks once it is attached: `request_key`, `refresh` (show the newest
        picture again), `limit`, `lost` (the share of packets that a report names), and `shown`,
        which is called with each chunk as it is sent.
        """
        self.shown: Callable[[MediaChunk], None] = _ignored_chunk
        self.refresh: Callable[[], None] = _nothing
        self.request_key: Callable[[], None] = _nothing
        self.limit: Callable[[int], None] = _ignored
        self.lost: Callable[[float], None] = _ignored_share
        self.track = PacketTrack("video", VIDEO_CLOCK_HZ, MAX_FRAMES, now_us)
        self.track.sent_by(sender)
        self._pacer = PacketPacer()
        self._time = DueTime(VIDEO_CLOCK_HZ)
        self._now_us = now_us
        self._options = options
        self._metrics = metrics
        self._budget = BitrateBudget()
        self._skipped = 0  # frames, since the last one that was sent
        self._skipped_in_all = 0
        self._put_us = 0  # when the last frame was queued
        self._refreshed_us = 0
        self._requested_us: int | None = None  # when a key frame was requested to continue
        sender.replaceTrack(self.track)
        on_key_request(sender, self._key_requested)
        on_reports(sender, self._estimated, self._reported)

    async def send(self, chunk: MediaChunk) -> MediaChunk | None:
        """Send a frame when it is due; return the event to tell, None when the frame is skipped."""
        now_us = self._now_us()
        if not self._passes(chunk, now_us):
            self._skipped += 1 + chunk.dropped
            self._skipped_in_all += 1
            return None
        self._put_us = now_us
        due_us = self._pacer.due_us(chunk.chunk, chunk.duration_us, now_us)
        ticks = self._time.ticks(due_us)
        self.track.put(
            PacedPacket(chunk.data, ticks, due_us, lambda: self._note_sent(chunk, ticks))
        )
        timestamp = await self.track.rtp_timestamp(ticks)
        dropped, self._skipped = chunk.dropped + self._skipped, 0
        update = {
            "rtp_timestamp": timestamp,
            "dropped": dropped,
            "index": chunk.index - self._skipped_in_all,
        }
        return chunk.model_copy(update=update)

    def cut(self) -> None:
        """Drop what waits, because the session went back to an earlier moment."""
        self.track.cut()
        self._pacer.restart()
        self._time.restart()

    def _note_sent(self, chunk: MediaChunk, ticks: int) -> None:
        self._time.sent(ticks)
        self.shown(chunk)

    def _passes(self, chunk: MediaChunk, now_us: int) -> bool:
        if self._requested_us is not None:  # skipping, until a key frame fits the budget
            self._budget.spend(0, now_us)
            ready = self._budget.recovered and not self.track.full
            if ready and not chunk.key:
                self._request_again(now_us)
            if not (ready and chunk.key):
                return False
            self._requested_us = None
        if self.track.full or not self._budget.spend(chunk.size_bytes, now_us):
            self._requested_us = now_us
            return False
        return True

    def _request_again(self, now_us: int) -> None:
        if self._skipped and self._requested_us is not None and now_us >= self._requested_us:
            self._requested_us = now_us + 1_000_000
            self.request_key()

    def _key_requested(self) -> None:
        """Have a key frame sent at once; no frame comes by itself while nothing is generated."""
        self._metrics.key_requests.inc()
        now_us = self._now_us()
        is_still = now_us - self._put_us >= STILL_US
        if is_still and now_us - self._refreshed_us >= REFRESH_INTERVAL_US:
            self._refreshed_us = now_us
            self.refresh()
        else:
            self.request_key()

    def _estimated(self, bits_per_s: int) -> None:
        least, most = self._options.min_bitrate, self._options.max_bitrate
        within = max(least, min(bits_per_s, most))
        if self.track.repeats:
            within //= 2  # each packet is sent twice
        self._budget.limit(within)
        self.limit(within)

    def _reported(self, fraction_lost: float, lost: int) -> None:
        self._metrics.packet_loss.observe(fraction_lost)
        self.lost(fraction_lost)


def _nothing() -> None:
    pass


def _ignored_chunk(_: MediaChunk) -> None:
    pass


def _ignored(_: int) -> None:
    pass


def _ignored_share(_: float) -> None:
    pass
