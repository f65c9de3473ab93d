"""Where this house holds on to insides of aiortc and aioice, and nowhere else.

None of this is promised by those packages. `tests/rtc/test_aiortc_seams.py` fails when a version of
them moves what is used here: then this module is what has to be changed.
"""

from collections.abc import Awaitable, Callable

from aiortc import RTCRtpSender
from aiortc.rtp import (
    RTCP_PSFB_APP,
    AnyRtcpPacket,
    RtcpPsfbPacket,
    RtcpRrPacket,
    RtcpSrPacket,
    unpack_remb_fci,
)


def on_key_request(sender: RTCRtpSender, call: Callable[[], None]) -> None:
    """Have `call` called for each PLI and FIR; with packets of our own aiortc forgets them."""
    sender._send_keyframe = call  # type: ignore[method-assign]


def on_reports(
    sender: RTCRtpSender,
    estimated: Callable[[int], None],
    reported: Callable[[float, int], None],
) -> None:
    """Listen to what a receiver reports.

    Args:
        estimated: called with the bits a second that it can take (REMB).
        reported: called with the part of packets lost since the last report, 0 to 1, and the
            packets lost altogether.
    """
    handle: Callable[[AnyRtcpPacket], Awaitable[None]] = sender._handle_rtcp_packet

    async def listen(packet: AnyRtcpPacket) -> None:
        if isinstance(packet, RtcpPsfbPacket) and packet.fmt == RTCP_PSFB_APP:
            try:
                bitrate, ssrcs = unpack_remb_fci(packet.fci)
            except ValueError:
                return
            if sender._ssrc in ssrcs:
                estimated(bitrate)
        elif isinstance(packet, RtcpRrPacket | RtcpSrPacket):
            for report in packet.reports:
                if report.ssrc == sender._ssrc:
                    reported(report.fraction_lost / 256, report.packets_lost)
        await handle(packet)

    sender._handle_rtcp_packet = listen  # type: ignore[method-assign]


def last_rtp_timestamp(sender: RTCRtpSender) -> int:
    """Return the RTP time of the newest packet: aiortc adds a random start to ours."""
    timestamp: int = vars(sender)["_RTCRtpSender__rtp_timestamp"]
    return timestamp


def round_trip_s(sender: RTCRtpSender) -> float | None:
    """Return the smoothed round trip time; None before the first report."""
    trip: float | None = vars(sender)["_RTCRtpSender__rtt"]
    return trip
