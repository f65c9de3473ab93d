"""Which pictures a peer is sent, and what is told of those that it is not."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiortc import RTCConfiguration, RTCPeerConnection
from aiortc.rtp import RTCP_PSFB_APP, RTCP_PSFB_PLI, RtcpPsfbPacket, pack_remb_fci

from reverie.rtc.metrics import Metrics
from reverie.rtc.webrtc.video_out import MAX_FRAMES, REFRESH_INTERVAL_US, STILL_US, VideoOut
from reverie.rtc.webrtc_options import WebRtcOptions
from reverie.sessions.protocol.media_events import MediaChunk

FRAME_US = 33_333


class Stage:
    """A `VideoOut` whose clock a test moves, and whose packets are not sent."""

    def __init__(self, connection: RTCPeerConnection) -> None:
        self.now_us = 0
        self.keys = self.refreshes = 0
        self.limits: list[int] = []
        (self.sender,) = connection.getSenders()
        options = WebRtcOptions(min_bitrate=100_000, max_bitrate=1_000_000)
        self.out = VideoOut(self.sender, lambda: self.now_us, options, Metrics())
        self.out.request_key = self._key
        self.out.refresh = self._refresh
        self.out.limit = self.limits.append
        self.out.track._origin = 0
        self.out.track._origin_known.set()

    async def send(self, number: int, *, size: int = 500, key: bool = False) -> MediaChunk | None:
        self.now_us = max(self.now_us, number * FRAME_US)
        self.out.track.cut()  # as if it had been sent
        return await self.put(number, size=size, key=key)

    async def put(self, number: int, *, size: int = 500, key: bool = False) -> MediaChunk | None:
        chunk = MediaChunk(
            stream="video", index=number, pts_us=number * FRAME_US, duration_us=FRAME_US, key=key,
            chunk=number, frame=0, last=True, step=number, size_bytes=size, data=b"x" * size,
        )  # fmt: skip
        async with asyncio.timeout(20):
            return await self.out.send(chunk)

    async def hear(self, packet: RtcpPsfbPacket) -> None:
        await self.sender._handle_rtcp_packet(packet)

    def _key(self) -> None:
        self.keys += 1

    def _refresh(self) -> None:
        self.refreshes += 1


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    connection.addTransceiver("video", direction="sendonly")
    yield Stage(connection)
    await connection.close()


async def test_a_receiver_below_the_bitrate_skips_to_key_frames(stage: Stage) -> None:
    """240 kbit/s for a line of 100: less than half comes through, in runs that can be decoded."""
    fci = pack_remb_fci(100_000, [stage.sender._ssrc])
    await stage.hear(RtcpPsfbPacket(fmt=RTCP_PSFB_APP, ssrc=1, media_ssrc=0, fci=fci))
    assert 90_000 <= stage.limits[-1] <= 110_000
    told: list[MediaChunk] = []
    numbers: list[int] = []
    asked = 0
    for number in range(600):
        key = stage.keys > asked
        asked = stage.keys
        sent = await stage.send(number, size=1000, key=number == 0 or key)
        if sent is not None:
            told.append(sent)
            numbers.append(number)
    assert [chunk.index for chunk in told] == list(range(len(told)))
    assert sum(chunk.dropped for chunk in told) == numbers[-1] + 1 - len(told)
    assert all(chunk.key for chunk in told if chunk.dropped)
    assert 600 * 0.3 < len(told) < 600 * 0.5
    assert 0 < stage.keys < 600 / 15


async def test_no_more_pictures_wait_than_may(stage: Stage) -> None:
    told = [await stage.put(number, key=number == 0) for number in range(MAX_FRAMES + 10)]
    assert all(told[:MAX_FRAMES])
    assert not any(told[MAX_FRAMES:])
    stage.out.track.cut()
    after = await stage.put(MAX_FRAMES + 10)
    assert after is None
    assert stage.keys == 1
    key = await stage.put(MAX_FRAMES + 11, key=True)
    assert key is not None
    assert (key.index, key.dropped) == (MAX_FRAMES, 11)


async def test_a_request_is_for_the_next_frame_or_for_the_newest_picture(stage: Stage) -> None:
    request = RtcpPsfbPacket(fmt=RTCP_PSFB_PLI, ssrc=1, media_ssrc=stage.sender._ssrc)
    stage.now_us = 10_000_000
    await stage.send(1, key=True)
    await stage.hear(request)
    assert (stage.keys, stage.refreshes) == (1, 0)
    stage.now_us += STILL_US
    await stage.hear(request)
    await stage.hear(request)
    assert (stage.keys, stage.refreshes) == (2, 1)
    stage.now_us += REFRESH_INTERVAL_US
    await stage.hear(request)
    assert stage.refreshes == 2


@pytest.mark.parametrize(("reported", "kept"), [(50_000, 100_000), (10**8, 1_000_000)])
async def test_the_deployment_bounds_what_a_receiver_may_ask_for(
    reported: int, kept: int, stage: Stage
) -> None:
    fci = pack_remb_fci(reported, [stage.sender._ssrc])
    await stage.hear(RtcpPsfbPacket(fmt=RTCP_PSFB_APP, ssrc=1, media_ssrc=0, fci=fci))
    assert stage.limits == [kept]


async def test_where_each_packet_is_sent_twice_pictures_take_half(stage: Stage) -> None:
    stage.out.track.repeats = True
    fci = pack_remb_fci(800_000, [stage.sender._ssrc])
    await stage.hear(RtcpPsfbPacket(fmt=RTCP_PSFB_APP, ssrc=1, media_ssrc=0, fci=fci))
    assert 390_000 <= stage.limits[-1] <= 410_000
