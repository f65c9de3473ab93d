"""A track of packets that were encoded elsewhere, once for all receivers."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import av
from aiortc import MediaStreamTrack, RTCRtpSender
from aiortc.mediastreams import MediaStreamError

from reverie.rtc.webrtc.aiortc_seams import last_rtp_timestamp, send_again
from reverie.rtc.wire.errors import PeerEndedError
from reverie.rtc.wire.framing import CloseCode

FIRST_LIMIT_S = 10.0
"""Time for the first packet to be sent."""

REPEAT_S = 0.015
"""A line that loses a packet often loses the one right after it as well."""


def sender_failed() -> PeerEndedError:
    """Return the error of a peer whose sender has failed, which aiortc does not report."""
    text = "the media could not be sent; the server's log says more"
    return PeerEndedError(CloseCode.INTERNAL, "sender_failed", text)


@dataclass(frozen=True, slots=True)
class PacedPacket:
    """A packet that waits until it is due.

    Attributes:
        ticks: its RTP time, in units of the track's clock, from 0.
        due_us: when to send it.
        sent: called when the sender takes it.
    """

    data: bytes
    ticks: int
    due_us: int
    sent: Callable[[], None] | None = None


class PacketTrack(MediaStreamTrack):
    """The packets of one sender: at most `capacity` wait, each until it is due.

    The producer checks `full` first and decides what is lost.
    """

    def __init__(
        self,
        kind: Literal["video", "audio"],
        rate_hz: int,
        capacity: int,
        now_us: Callable[[], int],
    ) -> None:
        super().__init__()
        self.kind = kind
        self.repeats = False  # on a line that loses much, each packet is sent twice
        self._base = Fraction(1, rate_hz)
        self._capacity = capacity
        self._now_us = now_us
        self._packets: deque[PacedPacket] = deque()
        self._news = asyncio.Event()
        self._sent: int | None = None  # ticks of the last packet that the sender took
        self._sender: RTCRtpSender | None = None
        self._origin: int | None = None
        self._origin_known = asyncio.Event()

    def sent_by(self, sender: RTCRtpSender) -> None:
        """Set the sender of the track, whose RTP times are read."""
        self._sender = sender

    @property
    def full(self) -> bool:
        """Whether no more may wait."""
        return len(self._packets) >= self._capacity

    def put(self, packet: PacedPacket) -> None:
        """Add a packet, unless the track is full or has ended."""
        if not self.full:
            self._packets.append(packet)
            self._news.set()

    def cut(self) -> None:
        """Drop what waits."""
        self._packets.clear()

    async def rtp_timestamp(self, ticks: int) -> int:
        """Return the RTP timestamp of `ticks`; wait for the first packet to be sent.

        Raises:
            PeerEndedError: nothing was sent in time, so the sender has failed.
        """
        try:
            async with asyncio.timeout(FIRST_LIMIT_S):
                await self._origin_known.wait()
        except TimeoutError:
            raise sender_failed() from None
        assert self._origin is not None
        return (self._origin + ticks) % 2**32

    async def recv(self) -> "av.Packet[Any]":
        """Return the next packet when it is due; called by the sender.

        Raises:
            MediaStreamError: the track has ended.
        """
        self._note_sent()
        if self.repeats and self._sent is not None and self._sender is not None:
            await asyncio.sleep(REPEAT_S)
            await send_again(self._sender, last_rtp_timestamp(self._sender))
        packet = await self._due()
        self._sent = packet.ticks
        if packet.sent is not None:
            packet.sent()
        made = av.Packet(packet.data)
        made.pts = packet.ticks
        made.time_base = self._base
        return made

    def stop(self) -> None:
        """End the track."""
        super().stop()
        self._news.set()

    async def _due(self) -> PacedPacket:
        while True:
            if self.readyState != "live":
                raise MediaStreamError
            self._news.clear()
            if not self._packets:
                await self._news.wait()
                continue
            wait_us = self._packets[0].due_us - self._now_us()
            if wait_us <= 0:
                return self._packets.popleft()
            await asyncio.sleep(wait_us / 1e6)  # a cut may remove the packet meanwhile

    def _note_sent(self) -> None:
        if self._origin is None and self._sent is not None and self._sender is not None:
            self._origin = (last_rtp_timestamp(self._sender) - self._sent) % 2**32
            self._origin_known.set()
