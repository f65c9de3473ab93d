"""The sound of one peer: Opus packets, each sent when it is due."""

from collections.abc import Callable

from aiortc import RTCRtpSender

from reverie.media.pacing import PacketPacer
from reverie.rtc.webrtc.packet_track import PacedPacket, PacketTrack
from reverie.rtc.webrtc.rtp_time import RtpTime
from reverie.sessions.protocol.media_events import MediaChunk

AUDIO_CLOCK_HZ = 48_000

MAX_PACKETS = 250
"""Packets of 20 ms that may wait until they are due; more are lost, and counted."""


class AudioOut:
    """Feeds one sender with the chunks of one stream."""

    def __init__(self, sender: RTCRtpSender, now_us: Callable[[], int]) -> None:
        """Replace the sender's track."""
        self.track = PacketTrack("audio", AUDIO_CLOCK_HZ, MAX_PACKETS, now_us)
        self.track.sent_by(sender)
        self._pacer = PacketPacer()
        self._time = RtpTime(AUDIO_CLOCK_HZ)
        self._now_us = now_us
        self._lost = 0  # since the last packet that was sent
        self._lost_in_all = 0
        sender.replaceTrack(self.track)

    async def send(self, chunk: MediaChunk) -> MediaChunk | None:
        """Send a packet when it is due; return the event to tell, None when the packet is lost."""
        if self.track.full:
            self._lost += 1 + chunk.dropped
            self._lost_in_all += 1
            return None
        now_us = self._now_us()
        due_us = self._pacer.due_us(chunk.chunk, chunk.duration_us, now_us)
        ticks = self._time.ticks(chunk.pts_us, now_us)
        self.track.put(PacedPacket(chunk.data, ticks, due_us, lambda: self._note_sent(ticks)))
        timestamp = await self.track.rtp_timestamp(ticks)
        dropped, self._lost = chunk.dropped + self._lost, 0
        update = {
            "rtp_timestamp": timestamp,
            "dropped": dropped,
            "index": chunk.index - self._lost_in_all,
        }
        return chunk.model_copy(update=update)

    def cut(self) -> None:
        """Drop what waits, because the session went back to an earlier moment."""
        self.track.cut()
        self._pacer.restart()
        self._time.restart()

    def _note_sent(self, ticks: int) -> None:
        self._time.sent(ticks, self._now_us())
