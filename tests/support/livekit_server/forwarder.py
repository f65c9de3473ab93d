"""A published track's RTP, sent on to its subscribers without being decoded.

Written against the insides of aiortc 1.16: its receiver hands each packet to `_handle_rtp_packet`,
its sender each report to `_handle_rtcp_packet`, and both are replaced here.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import cast

from aiortc import RTCRtpReceiver, RTCRtpSender, RTCRtpTransceiver, clock
from aiortc.rtp import (
    RTCP_PSFB_APP,
    RTCP_PSFB_FIR,
    RTCP_PSFB_PLI,
    RTCP_RTPFB_NACK,
    AnyRtcpPacket,
    HeaderExtensionsMap,
    RtcpPsfbPacket,
    RtcpReceiverInfo,
    RtcpRrPacket,
    RtcpRtpfbPacket,
    RtpPacket,
    pack_remb_fci,
)

KEPT_PACKETS = 512
"""How many of the last packets a subscriber may ask for again."""
REMB_EVERY_S = 0.5
REPORT_EVERY_S = 1.0
KEY_FRAME_EVERY_S = 0.2
_SEQUENCES = 1 << 16


@dataclass(slots=True)
class _Output:
    """One subscriber, and what it was sent."""

    transceiver: RTCRtpTransceiver
    kept: dict[int, RtpPacket] = field(default_factory=dict)

    @property
    def sender(self) -> RTCRtpSender:
        return self.transceiver.sender

    async def send_again(self, sequence: int) -> bool:
        """Send a packet once more, if it is still kept; return whether the line is up."""
        packet = self.kept.get(sequence)
        return packet is None or await self._transmit(packet)

    async def send(self, packet: RtpPacket, mime_type: str) -> bool:
        """Send a packet under this subscriber's own names; return whether the line is up."""
        codecs = (codec for codec in self.transceiver._codecs if codec.mimeType == mime_type)
        codec = next(codecs, None)
        if codec is None or self.sender.transport.state != "connected":
            return True
        assert codec.payloadType is not None, "a codec that was agreed on has a payload type"
        sent = RtpPacket(
            payload_type=codec.payloadType,
            marker=packet.marker,
            sequence_number=packet.sequence_number,
            timestamp=packet.timestamp,
            ssrc=self.sender._ssrc,
            payload=packet.payload,
        )
        sent.padding_size = packet.padding_size
        sent.extensions.mid = self.transceiver.mid
        self.kept[sent.sequence_number] = sent
        self.kept.pop((sent.sequence_number - KEPT_PACKETS) % _SEQUENCES, None)
        # For the sender's reports, by which a player keeps picture and sound together.
        self.sender.__setattr__("_RTCRtpSender__ntp_timestamp", clock.current_ntp_time())
        self.sender.__setattr__("_RTCRtpSender__rtp_timestamp", sent.timestamp)
        return await self._transmit(sent)

    async def _transmit(self, packet: RtpPacket) -> bool:
        names: HeaderExtensionsMap = self.sender.__getattribute__(
            "_RTCRtpSender__rtp_header_extensions_map"
        )
        try:
            await self.sender.transport._send_rtp(packet.serialize(names))
        except ConnectionError:
            return False
        return True


class Forwarder:
    """Takes the packets of a track that a client sends, and hands them on.

    Args:
        source: of the publisher's connection.
        rate_bps: the bit rate that the publisher is told it has.
    """

    def __init__(self, source: RTCRtpTransceiver, rate_bps: int) -> None:
        self.kind = source.kind
        self._receiver: RTCRtpReceiver = source.receiver
        self._mime_types = {codec.payloadType: codec.mimeType for codec in source._codecs}
        self._rate_bps = rate_bps
        self._outputs: dict[RTCRtpSender, _Output] = {}
        self._source_number = 0
        self._next_remb_s = 0.0
        self._next_report_s = 0.0
        self._is_closed = False
        self._wants_key_frame = True
        self._next_ask_s = 0.0
        self._receiver.__setattr__("_handle_rtp_packet", self._on_packet)

    def add(self, transceiver: RTCRtpTransceiver) -> None:
        """Send to a subscriber from now on; the caller asks for a key frame."""
        output = _Output(transceiver)
        sender = transceiver.sender
        self._outputs[sender] = output
        default = sender._handle_rtcp_packet
        sender.__setattr__("_handle_rtcp_packet", self._report_handler(output, default))

    def remove(self, sender: RTCRtpSender) -> None:
        """Send to a subscriber no longer."""
        self._outputs.pop(sender, None)

    def close(self) -> None:
        """Hand nothing on any more, and report nothing; the publisher may send on in vain."""
        self._is_closed = True
        self._outputs.clear()

    async def ask_for_key_frame(self) -> None:
        """Have the publisher soon begin a picture that needs none before it."""
        self._wants_key_frame = self.kind == "video"
        await self._ask()

    def _report_handler(
        self, output: _Output, default: Callable[[AnyRtcpPacket], Awaitable[None]]
    ) -> Callable[[AnyRtcpPacket], Awaitable[None]]:
        async def on_report(packet: AnyRtcpPacket) -> None:
            if isinstance(packet, RtcpPsfbPacket) and packet.fmt in (RTCP_PSFB_PLI, RTCP_PSFB_FIR):
                await self.ask_for_key_frame()
            elif isinstance(packet, RtcpRtpfbPacket) and packet.fmt == RTCP_RTPFB_NACK:
                for sequence in packet.lost:
                    await output.send_again(sequence)
            else:
                await default(packet)

        return on_report

    async def _on_packet(self, packet: RtpPacket, arrival_time_ms: int) -> None:
        del arrival_time_ms
        if self._is_closed:
            return
        mime_type = self._mime_types.get(packet.payload_type)
        if mime_type is None or mime_type.endswith("/rtx"):
            return
        self._source_number = packet.ssrc
        await self._allow_the_rate()
        await self._report(packet)
        for sender, output in list(self._outputs.items()):
            if not await output.send(packet, mime_type):
                self.remove(sender)
        await self._ask()

    async def _ask(self) -> None:
        """Pass a wish for a key frame on, unless that was done a moment ago; then later."""
        if self._wants_key_frame and self._source_number and time.monotonic() > self._next_ask_s:
            self._wants_key_frame = False
            self._next_ask_s = time.monotonic() + KEY_FRAME_EVERY_S
            await self._receiver._send_rtcp_pli(self._source_number)

    async def _report(self, packet: RtpPacket) -> None:
        """Tell the publisher that its packets arrive: aiortc counts none past its own handler."""
        if time.monotonic() < self._next_report_s:
            return
        self._next_report_s = time.monotonic() + REPORT_EVERY_S
        own = cast("int | None", self._receiver.__getattribute__("_RTCRtpReceiver__rtcp_ssrc"))
        arrived = RtcpReceiverInfo(
            ssrc=packet.ssrc,
            fraction_lost=0,
            packets_lost=0,
            highest_sequence=packet.sequence_number,
            jitter=0,
            lsr=0,
            dlsr=0,
        )
        await self._receiver._send_rtcp(RtcpRrPacket(ssrc=own or 0, reports=[arrived]))

    async def _allow_the_rate(self) -> None:
        """Tell the publisher its bit rate: aiortc measures none without its own decoder."""
        if self.kind != "video" or time.monotonic() < self._next_remb_s:
            return
        self._next_remb_s = time.monotonic() + REMB_EVERY_S
        own = cast("int | None", self._receiver.__getattribute__("_RTCRtpReceiver__rtcp_ssrc"))
        message = pack_remb_fci(self._rate_bps, [self._source_number])
        await self._receiver._send_rtcp(
            RtcpPsfbPacket(fmt=RTCP_PSFB_APP, ssrc=own or 0, media_ssrc=0, fci=message)
        )
