"""Packets wait for their moment, in order, and no longer than they are wanted."""

import asyncio

import pytest
from aiortc.mediastreams import MediaStreamError

from reverie.rtc.webrtc.packet_track import PacedPacket, PacketTrack
from reverie.rtc.wire.errors import PeerEndedError


class Hand:
    """A clock that a test moves; sleeping is real, for moments that have passed it is none."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


def track(capacity: int = 3) -> tuple[PacketTrack, Hand]:
    clock = Hand()
    return PacketTrack("video", 90_000, capacity, clock), clock


async def test_what_is_due_comes_in_order_with_its_time() -> None:
    made, _ = track()
    sent: list[str] = []
    made.put(PacedPacket(b"one", 0, 0, lambda: sent.append("one")))
    made.put(PacedPacket(b"two", 3000, 0))
    first, second = await made.recv(), await made.recv()
    assert (bytes(first), first.pts, first.time_base) == (b"one", 0, made._base)
    assert (bytes(second), second.pts) == (b"two", 3000)
    assert sent == ["one"]


async def test_what_is_not_due_waits_and_a_cut_takes_it_out() -> None:
    made, clock = track()
    made.put(PacedPacket(b"late", 9000, 20_000))
    taking = asyncio.create_task(made.recv())
    await asyncio.sleep(0)
    assert not taking.done()
    made.cut()
    made.put(PacedPacket(b"new", 9001, 0))
    clock.now = 30_000
    async with asyncio.timeout(20):
        assert bytes(await taking) == b"new"


async def test_no_more_waits_than_may() -> None:
    made, _ = track(capacity=2)
    for number in range(5):
        made.put(PacedPacket(b"x", number, 0))
    assert made.full
    assert [(await made.recv()).pts for _ in range(2)] == [0, 1]
    assert not made.full


async def test_a_track_that_has_ended_gives_nothing() -> None:
    made, _ = track()
    taking = asyncio.create_task(made.recv())
    await asyncio.sleep(0)
    made.stop()
    with pytest.raises(MediaStreamError):
        async with asyncio.timeout(20):
            await taking


async def test_a_sender_that_sends_nothing_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reverie.rtc.webrtc.packet_track.FIRST_LIMIT_S", 0.01)
    made, _ = track()
    with pytest.raises(PeerEndedError) as ended:
        await made.rtp_timestamp(0)
    assert ended.value.reason == "sender_failed"
