"""The pictures of one peer: when each is sent, which are skipped, and what the receiver reports."""

from collections.abc import Callable

from aiortc import RTCRtpSender

from reverie.rtc.metrics import Metrics
from reverie.rtc.webrtc.aiortc_seams import on_key_request, on_reports
from reverie.rtc.webrtc.pacer import PacketPacer
from reverie.rtc.webrtc.packet_track import PacedPacket, PacketTrack
from reverie.rtc.webrtc.rtp_time import RtpTime
from reverie.rtc.webrtc_options import WebRtcOptions
from reverie.sessions.protocol.events import MediaChunk

VIDEO_CLOCK_HZ = 90_000

MAX_FRAMES = 64
"""Frames that wait for their moment; more are skipped, to the next key frame."""


STANDS_US = 300_000
"""Without a frame for so long, the next one may not come for a while."""

REFRESH_INTERVAL_US = 1_000_000


class BitrateBudget:
    """What a receiver that takes less than is sent may still be sent.

    While everybody is sent what the median takes, those below it would drown. They are sent what
    they report to take, with whole runs of frames left out.
    """

    def __init__(self, slack_s: float = 1.0) -> None:
        """Let a burst of `slack_s` pass at any rate."""
        self._slack_s = slack_s
        self._rate: int | None = None
        self._bits = 0.0
        self._filled_us = 0

    def limit(self, bits_per_s: int) -> None:
        """Take a new estimate."""
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
        """Whether enough has gathered for a key frame and what follows it."""
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
        """Begin to be the sender's track.

        The peer sets what is called: `request_key`, `refresh` (the newest picture once more) and
        `limit` once it is attached; and `shown`, which is told each chunk as it is sent.
        """
        self.shown: Callable[[MediaChunk], None] = _unnoticed
        self.refresh: Callable[[], None] = _nothing
        self.request_key: Callable[[], None] = _nothing
        self.limit: Callable[[int], None] = _ignored
        self.track = PacketTrack("video", VIDEO_CLOCK_HZ, MAX_FRAMES, now_us)
        self.track.sent_by(sender)
        self._spacing = PacketPacer()
        self._time = RtpTime(VIDEO_CLOCK_HZ)
        self._now_us = now_us
        self._options = options
        self._metrics = metrics
        self._budget = BitrateBudget()
        self._skipped = 0  # frames, since the last that was sent
        self._skipped_ever = 0
        self._put_us = 0  # when a frame was last put in
        self._refreshed_us = 0
        self._asked_us: int | None = None  # when a key frame was asked for to go on
        sender.replaceTrack(self.track)
        on_key_request(sender, self._key_requested)
        on_reports(sender, self._estimated, self._reported)

    async def send(self, chunk: MediaChunk) -> MediaChunk | None:
        """Have a frame sent when it is due; return what to tell of it, None when it is skipped."""
        now_us = self._now_us()
        if not self._passes(chunk, now_us):
            self._skipped += 1 + chunk.dropped
            self._skipped_ever += 1
            return None
        self._put_us = now_us
        due_us = self._spacing.due_us(chunk.chunk, chunk.duration_us, now_us)
        ticks = self._time.ticks(chunk.pts_us, now_us)
        self.track.put(
            PacedPacket(chunk.data, ticks, due_us, lambda: self._note_sent(chunk, ticks))
        )
        timestamp = await self.track.rtp_timestamp(ticks)
        dropped, self._skipped = chunk.dropped + self._skipped, 0
        update = {
            "rtp_timestamp": timestamp,
            "dropped": dropped,
            "index": chunk.index - self._skipped_ever,
        }
        return chunk.model_copy(update=update)

    def cut(self) -> None:
        """Drop what waits: it was made before the world went back."""
        self.track.cut()
        self._spacing.restart()
        self._time.restart()

    def _note_sent(self, chunk: MediaChunk, ticks: int) -> None:
        self._time.sent(ticks, self._now_us())
        self.shown(chunk)

    def _passes(self, chunk: MediaChunk, now_us: int) -> bool:
        if self._asked_us is not None:  # skipping, until a key frame that can be afforded
            self._budget.spend(0, now_us)
            ready = self._budget.recovered and not self.track.full
            if ready and not chunk.key:
                self._ask_again(now_us)
            if not (ready and chunk.key):
                return False
            self._asked_us = None
        if self.track.full or not self._budget.spend(chunk.size_bytes, now_us):
            self._asked_us = now_us
            return False
        return True

    def _ask_again(self, now_us: int) -> None:
        if self._skipped and self._asked_us is not None and now_us >= self._asked_us:
            self._asked_us = now_us + 1_000_000
            self.request_key()

    def _key_requested(self) -> None:
        """Have a key frame come at once; nothing comes by itself while the world stands."""
        self._metrics.key_requests.inc()
        now_us = self._now_us()
        stands = now_us - self._put_us >= STANDS_US
        if stands and now_us - self._refreshed_us >= REFRESH_INTERVAL_US:
            self._refreshed_us = now_us
            self.refresh()
        else:
            self.request_key()

    def _estimated(self, bits_per_s: int) -> None:
        least, most = self._options.min_bitrate, self._options.max_bitrate
        within = max(least, min(bits_per_s, most))
        self._budget.limit(within)
        self.limit(within)

    def _reported(self, lost_part: float, lost: int) -> None:
        self._metrics.packet_loss.observe(lost_part)


def _nothing() -> None:
    pass


def _unnoticed(_: MediaChunk) -> None:
    pass


def _ignored(_: int) -> None:
    pass
