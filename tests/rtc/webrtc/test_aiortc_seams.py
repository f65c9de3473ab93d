"""The private parts of aiortc and aioice that are used still do what they did.

When one of these fails after an update, `rtc/webrtc/aiortc_seams.py` is what has to be changed.
"""

import inspect
import time
from collections.abc import AsyncIterator, Iterator
from fractions import Fraction

import aioice
import av
import pytest
from aiortc import RTCConfiguration, RTCIceGatherer, RTCIceTransport, RTCPeerConnection
from aiortc.codecs import get_encoder
from aiortc.mediastreams import MediaStreamTrack
from aiortc.rtcdtlstransport import RTCDtlsTransport
from aiortc.rtcrtpparameters import RTCRtpCodecParameters
from aiortc.rtp import (
    RTCP_PSFB_APP,
    RTCP_PSFB_FIR,
    RTCP_PSFB_PLI,
    RtcpPsfbPacket,
    RtcpReceiverInfo,
    RtcpRrPacket,
    RtpPacket,
    pack_remb_fci,
)
from net_namespace import namespace_or_skip

from reverie.rtc.webrtc.aiortc_seams import (
    last_rtp_timestamp,
    on_key_request,
    on_line_reports,
    on_reports,
    path_of,
    quicken_data_channels,
    round_trip_s,
    route_through,
    send_again,
    switch_path,
    within_ports,
)


@pytest.fixture
async def connection() -> AsyncIterator[RTCPeerConnection]:
    made = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    made.addTransceiver("video", direction="sendonly")
    yield made
    await made.close()


@pytest.fixture
def network() -> Iterator[None]:
    with namespace_or_skip() as namespace, namespace.entered():
        yield


@pytest.mark.parametrize("kind", [RTCP_PSFB_PLI, RTCP_PSFB_FIR])
async def test_a_receiver_that_wants_a_key_frame_is_heard(
    kind: int, connection: RTCPeerConnection
) -> None:
    (sender,) = connection.getSenders()
    wishes: list[None] = []
    on_key_request(sender, lambda: wishes.append(None))
    await sender._handle_rtcp_packet(RtcpPsfbPacket(fmt=kind, ssrc=1, media_ssrc=sender._ssrc))
    assert len(wishes) == 1


async def test_what_a_receiver_reports_is_heard(connection: RTCPeerConnection) -> None:
    (sender,) = connection.getSenders()
    estimates: list[int] = []
    losses: list[tuple[float, int]] = []
    on_reports(sender, estimates.append, lambda part, lost: losses.append((part, lost)))
    for ssrc in (sender._ssrc, sender._ssrc ^ 1):
        fci = pack_remb_fci(500_000, [ssrc])
        packet = RtcpPsfbPacket(fmt=RTCP_PSFB_APP, ssrc=1, media_ssrc=0, fci=fci)
        await sender._handle_rtcp_packet(packet)
        report = RtcpReceiverInfo(ssrc, 64, 7, highest_sequence=9, jitter=0, lsr=0, dlsr=0)
        await sender._handle_rtcp_packet(RtcpRrPacket(ssrc=1, reports=[report]))
    await sender._handle_rtcp_packet(
        RtcpPsfbPacket(fmt=RTCP_PSFB_APP, ssrc=1, media_ssrc=0, fci=b"nonsense")
    )
    assert estimates == [pytest.approx(500_000, rel=0.01)]
    assert losses == [(0.25, 7)]


async def test_a_sender_has_a_clock_and_a_round_trip(connection: RTCPeerConnection) -> None:
    (sender,) = connection.getSenders()
    assert last_rtp_timestamp(sender) == 0
    assert round_trip_s(sender) is None


async def test_each_round_trip_that_a_report_tells_is_heard(connection: RTCPeerConnection) -> None:
    (sender,) = connection.getSenders()
    trips: list[float] = []
    losses: list[float] = []
    on_line_reports(sender, trips.append, losses.append)
    vars(sender)["_RTCRtpSender__lsr"] = 77
    vars(sender)["_RTCRtpSender__lsr_time"] = time.time() - 0.25
    for ssrc, sent in ((sender._ssrc, 77), (sender._ssrc, 76), (sender._ssrc ^ 1, 77)):
        report = RtcpReceiverInfo(ssrc, 64, 7, highest_sequence=9, jitter=0, lsr=sent, dlsr=6554)
        await sender._handle_rtcp_packet(RtcpRrPacket(ssrc=1, reports=[report]))
    assert trips == [pytest.approx(0.15, abs=0.1)]
    assert losses == [0.25, 0.25]


async def test_dtls_asks_for_its_datagrams_each_time() -> None:
    source = inspect.getsource(RTCDtlsTransport)
    assert "self.transport._recv()" in source
    assert "self.transport._send(" in source
    transport = RTCIceTransport(RTCIceGatherer([]))

    async def receive() -> bytes:
        return b"x"

    async def send(_: bytes) -> None:
        pass

    route_through(transport, receive, send)
    assert transport._recv is receive
    assert transport._send is send
    await transport.stop()


async def test_a_transport_can_be_led_elsewhere() -> None:
    transport, other = RTCIceTransport(RTCIceGatherer([])), RTCIceGatherer([])
    before = path_of(transport)
    path = path_of(other)
    assert isinstance(path.connection, aioice.Connection)
    switch_path(transport, path)
    assert path_of(transport).connection is path.connection
    await before.close()
    assert transport.state == "new"  # what becomes of the old path does not concern it
    await transport.stop()


async def test_candidates_keep_to_a_range_of_ports(network: None) -> None:
    with within_ports((42_000, 42_001)):
        gatherers = [RTCIceGatherer([]) for _ in range(3)]
        for each in gatherers:
            await each.gather()
    by_address: dict[str, list[int]] = {}
    for each in gatherers:
        for candidate in each.getLocalCandidates():
            by_address.setdefault(candidate.ip, []).append(candidate.port)
        await path_of(each).close()
    assert by_address
    assert all(sorted(ports) == [42_000, 42_001] for ports in by_address.values())
    free = RTCIceGatherer([])
    await free.gather()
    assert all(not 42_000 <= each.port <= 42_001 for each in free.getLocalCandidates())
    await path_of(free).close()


@pytest.mark.parametrize("kind", ["video/VP8", "video/H264", "audio/opus"])
def test_encoders_pack_what_was_encoded_elsewhere(kind: str) -> None:
    codec = RTCRtpCodecParameters(mimeType=kind, clockRate=90_000, payloadType=96)
    packet = av.Packet(b"\x00\x00\x00\x01\x65" + b"x" * 3000)
    packet.pts, packet.time_base = 4500, Fraction(1, 90_000)
    payloads, timestamp = get_encoder(codec).pack(packet)
    assert timestamp > 0
    assert sum(map(len, payloads)) >= 3000


async def test_a_sender_that_dies_stops_its_track(connection: RTCPeerConnection) -> None:
    """aiortc reports it nowhere else: a failed sender is noticed by this."""
    source = inspect.getsource(type(connection.getSenders()[0])._run_rtp)
    assert "self.__track.stop()" in source
    assert hasattr(MediaStreamTrack, "readyState")


async def test_the_packets_of_a_picture_can_be_sent_again(
    connection: RTCPeerConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sender,) = connection.getSenders()
    history = vars(sender)["_RTCRtpSender__rtp_history"]
    for number, timestamp in ((7, 1000), (8, 1000), (9, 4000)):
        history[number] = RtpPacket(sequence_number=number, timestamp=timestamp)
    sent: list[bytes] = []

    async def take(data: bytes) -> None:
        sent.append(data)

    monkeypatch.setattr(sender.transport, "_send_rtp", take)
    await send_again(sender, 1000)
    assert [RtpPacket.parse(data).sequence_number for data in sent] == [7, 8]


async def test_data_channels_wait_less_than_a_second_before_they_send_again() -> None:
    quicken_data_channels()
    connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    connection.createDataChannel("events")
    assert connection.sctp is not None
    assert connection.sctp._rto == 1.0
    connection.sctp._update_rto(0.02)
    assert connection.sctp._rto == 0.3
    await connection.close()
