"""The only place that uses private parts of aiortc and aioice.

None of this is public API. `tests/rtc/webrtc/test_aiortc_seams.py` fails when a version of those
packages moves what is used here; then this module must be changed.
"""

import asyncio
import errno
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from aioice import Connection, stun
from aioice.ice import get_host_addresses
from aiortc import (
    RTCIceCandidate,
    RTCIceGatherer,
    RTCIceTransport,
    RTCPeerConnection,
    RTCRtpSender,
    rtcrtpreceiver,
    rtcsctptransport,
)
from aiortc.codecs import get_decoder
from aiortc.codecs.base import Decoder
from aiortc.rtcicetransport import candidate_to_aioice
from aiortc.rtcrtpparameters import RTCRtpCodecParameters
from aiortc.rtp import (
    RTCP_PSFB_APP,
    AnyRtcpPacket,
    RtcpPsfbPacket,
    RtcpRrPacket,
    RtcpSrPacket,
    RtpPacket,
    unpack_remb_fci,
)
from av import CodecContext


def on_key_request(sender: RTCRtpSender, call: Callable[[], None]) -> None:
    """Call `call` for each PLI and FIR, which aiortc drops for packets that it did not encode."""
    sender._send_keyframe = call  # type: ignore[method-assign]


def on_reports(
    sender: RTCRtpSender,
    estimated: Callable[[int], None],
    reported: Callable[[float, int], None],
) -> None:
    """Handle the reports of a receiver.

    Args:
        estimated: called with its bandwidth estimate in bits a second (REMB).
        reported: called with the fraction of packets lost since the last report, 0 to 1, and the
            total of lost packets.
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


def on_line_reports(
    sender: RTCRtpSender, trip: Callable[[float], None], lost: Callable[[float], None]
) -> None:
    """Hear of the line from a receiver's reports; of the round trip aiortc keeps an average alone.

    Args:
        sender: whose receiver reports.
        trip: called with each round trip in seconds.
        lost: called with the part of the packets that was lost since the last report.
    """
    handle: Callable[[AnyRtcpPacket], Awaitable[None]] = sender._handle_rtcp_packet

    async def listen(packet: AnyRtcpPacket) -> None:
        if isinstance(packet, RtcpRrPacket | RtcpSrPacket):
            sent, sent_s = (vars(sender)[f"_RTCRtpSender__{name}"] for name in ("lsr", "lsr_time"))
            for report in packet.reports:
                if report.ssrc != sender._ssrc:
                    continue
                lost(report.fraction_lost / 256)
                if report.dlsr and report.lsr == sent:
                    trip(time.time() - sent_s - report.dlsr / 65536)
        await handle(packet)

    sender._handle_rtcp_packet = listen  # type: ignore[method-assign]


def quicken_data_channels() -> None:
    """Send what data channels have lost again after a few round trips; aiortc waits a second.

    A receiver may delay its acknowledgement by 0.2 s (RFC 9260, section 6.2).
    """
    rtcsctptransport.SCTP_RTO_INITIAL = 1.0
    rtcsctptransport.SCTP_RTO_MIN = 0.3  # type: ignore[assignment]


def last_rtp_timestamp(sender: RTCRtpSender) -> int:
    """Return the RTP time of the newest packet: aiortc adds a random start to ours."""
    timestamp: int = vars(sender)["_RTCRtpSender__rtp_timestamp"]
    return timestamp


async def send_again(sender: RTCRtpSender, timestamp: int) -> None:
    """Send the packets of an RTP time again, as if each had been reported as lost."""
    history: dict[int, RtpPacket] = vars(sender)["_RTCRtpSender__rtp_history"]
    found = [packet for packet in history.values() if packet.timestamp == timestamp]
    for packet in found:
        await sender._retransmit(packet.sequence_number)


def round_trip_s(sender: RTCRtpSender) -> float | None:
    """Return the smoothed round trip time; None before the first report."""
    trip: float | None = vars(sender)["_RTCRtpSender__rtt"]
    return trip


# --- ports ---

_PORTS: ContextVar[tuple[int, int] | None] = ContextVar("ports", default=None)


@contextmanager
def within_ports(ports: tuple[int, int] | None) -> Iterator[None]:
    """Gather candidates in the block on ports of a range; None: on any port.

    aioice asks the event loop for any free port; inside of the block, the loop chooses one of the
    range instead.
    """
    if ports is None:
        yield
        return
    _patch(asyncio.get_running_loop())
    token = _PORTS.set(ports)
    try:
        yield
    finally:
        _PORTS.reset(token)


def _patch(loop: asyncio.AbstractEventLoop) -> None:
    make = loop.create_datagram_endpoint
    if getattr(make, "knows_ports", False):
        return

    async def make_within(factory: Any, local_addr: Any = None, **others: Any) -> Any:
        ports = _PORTS.get()
        if ports is None or local_addr is None or local_addr[1] != 0:
            return await make(factory, local_addr=local_addr, **others)
        lowest, highest = ports
        begin = random.randrange(lowest, highest + 1)
        for port in (*range(begin, highest + 1), *range(lowest, begin)):
            try:
                return await make(factory, local_addr=(local_addr[0], port), **others)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
        raise OSError(errno.EADDRINUSE, f"no port of {lowest} to {highest} is free")

    make_within.knows_ports = True  # type: ignore[attr-defined]
    loop.create_datagram_endpoint = make_within  # type: ignore[method-assign, assignment]


# --- paths ---


class IcePath:
    """One path to a peer: aioice's connection, which aiortc does not expose."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    @property
    def controlling(self) -> bool:
        """Whether this end nominates the candidate pair."""
        return self.connection.ice_controlling

    def prepare(self, *, controlling: bool, ufrag: str, password: str) -> None:
        """Set the role and the peer's secrets."""
        self.connection.ice_controlling = controlling
        self.connection.remote_username = ufrag
        self.connection.remote_password = password

    async def connect(self) -> None:
        """Find a candidate pair that works.

        Raises:
            ConnectionError: there is none.
        """
        await self.connection.connect()

    async def add_candidate(self, candidate: RTCIceCandidate) -> None:
        """Add a candidate of the peer; one that comes too late is ignored."""
        with suppress(ValueError):
            await self.connection.add_remote_candidate(candidate_to_aioice(candidate))

    def pace_checks(self, may_check: Callable[[str], bool]) -> None:
        """Send a check to a host only if `may_check` allows it.

        To call once all candidates of this end are gathered; an unsent check counts as lost.
        """
        for protocol in self.connection._protocols:
            paced = _paced(protocol.send_stun, may_check)
            protocol.send_stun = paced  # type: ignore[method-assign, assignment]

    @property
    def remote_host(self) -> str | None:
        """The peer's host; None before there is one."""
        pair = self.connection._nominated.get(1)
        return pair.remote_addr[0] if pair else None

    async def recv(self) -> bytes:
        """Return the next datagram.

        Raises:
            ConnectionError: the path is closed.
        """
        return await self.connection.recv()

    async def send(self, data: bytes) -> None:
        """Send a datagram.

        Raises:
            ConnectionError: the path is closed.
        """
        await self.connection.send(data)

    async def close(self) -> None:
        """Close the path. Idempotent."""
        await self.connection.close()


_SendStun = Callable[[stun.Message, tuple[str, int]], None]


def _paced(send: _SendStun, may_check: Callable[[str], bool]) -> _SendStun:
    def send_paced(message: stun.Message, address: tuple[str, int]) -> None:
        is_check = message.message_class == stun.Class.REQUEST
        if not is_check or may_check(address[0]):
            send(message, address)

    return send_paced


def own_addresses() -> list[str]:
    """Return the addresses of this machine that are offered to peers."""
    return get_host_addresses(use_ipv4=True, use_ipv6=True)


def ice_transport_of(connection: RTCPeerConnection) -> RTCIceTransport:
    """Return the one transport of a connection whose sections are bundled."""
    for transceiver in connection.getTransceivers():
        return transceiver.receiver.transport.transport
    assert connection.sctp is not None, "a connection has a section"
    return connection.sctp.transport.transport


def path_of(holder: RTCIceTransport | RTCIceGatherer) -> IcePath:
    """Return the path under a transport, or the one that a gatherer gathers for."""
    return IcePath(holder._connection)


def route_through(
    transport: RTCIceTransport,
    receive: Callable[[], Awaitable[bytes]],
    send: Callable[[bytes], Awaitable[None]],
) -> None:
    """Make DTLS use these functions for its datagrams."""
    transport._recv = receive  # type: ignore[assignment]
    transport._send = send  # type: ignore[assignment]


def switch_path(transport: RTCIceTransport, path: IcePath) -> None:
    """Make a transport monitor and close another path from now on, instead of the one before.

    The monitor is our own: aiortc's loops for ever when a path is closed before it has begun. The
    transport owns the task, and awaits it when it stops.
    """
    inside = vars(transport)
    watching: asyncio.Future[None] | None = inside["_RTCIceTransport__monitor_task"]
    if watching is not None:
        watching.cancel()
    transport._connection = path.connection
    inside["_RTCIceTransport__monitor_task"] = asyncio.ensure_future(_watch(transport, path))


async def _watch(transport: RTCIceTransport, path: IcePath) -> None:
    await path.connection.get_event()  # the only event is the close
    if transport.state == "completed":
        set_state: Callable[[str], None] = transport.__getattribute__("_RTCIceTransport__setState")
        set_state("failed")


# --- decoders ---


def wrap_decoders(wrap: Callable[[Decoder, str], Decoder]) -> None:
    """Wrap every decoder that a receiver creates; `wrap` gets the name of its codec."""

    def get_wrapped(codec: RTCRtpCodecParameters) -> Decoder:
        return wrap(get_decoder(codec), codec.name)

    rtcrtpreceiver.get_decoder = get_wrapped  # type: ignore[attr-defined]


def set_max_pixels(decoder: Decoder, pixels: int) -> None:
    """Make an H.264 decoder, which has decoded nothing yet, refuse pictures with more pixels."""
    context: CodecContext = vars(decoder)["codec"]
    context.options = {"max_pixels": str(pixels)}
