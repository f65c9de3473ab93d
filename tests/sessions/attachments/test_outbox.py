"""The order and the bounds of what waits for one attachment."""

import asyncio
import contextlib
from typing import Any

import pytest
from fake_clock import FakeClock
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.sessions.attachments.outbox import Outbox, OutboxLimits
from reverie.sessions.protocol.errors import AttachmentEndedError
from reverie.sessions.protocol.events import AnyEvent, Error, RequestAccepted, SessionClosed
from reverie.sessions.protocol.media_events import MediaChunk, MediaInit


def init(width: int = 16) -> MediaInit:
    return MediaInit(
        stream="video",
        kind="video",
        codec="rgb24",
        container="raw",
        width=width,
        height=16,
        rate_hz=20.0,
        seed=7,
    )


def chunk(number: int, key: bool = True, size: int = 8) -> MediaChunk:
    return MediaChunk(
        stream="video",
        index=0,
        pts_us=number * 100,
        duration_us=100,
        key=key,
        chunk=number,
        frame=0,
        last=True,
        step=number,
        size_bytes=size,
        data=bytes(size),
    )


class OutboxRig:
    """An outbox, and what it asked for."""

    def __init__(self, **limits: Any) -> None:
        self.clock = FakeClock(now_us=1)
        self.overflows = 0
        self.keys_wanted: list[str] = []
        self.outbox = Outbox(
            "s", self.clock.now_us, OutboxLimits(**limits), self.overflow, self.keys_wanted.append
        )

    def overflow(self) -> None:
        self.overflows += 1
        self.outbox.end("slow_viewer", Error(code="slow_viewer", message=""))

    def frames(self, *numbers: int, key: bool = True) -> None:
        for number in numbers:
            self.outbox.put_frame(init(), chunk(number, key))

    async def take(self, count: int) -> list[AnyEvent]:
        return [await self.outbox.take() for _ in range(count)]

    async def take_all(self) -> list[AnyEvent]:
        """Take until there is nothing; an item without an event is passed over."""
        taken = []
        with contextlib.suppress(AttachmentEndedError, TimeoutError):
            async with asyncio.timeout(0):
                while True:
                    taken.append(await self.outbox.take())
        return taken


def accepted(number: int) -> RequestAccepted:
    return RequestAccepted(command=f"c{number}")


async def test_events_come_in_order_and_are_numbered_without_a_gap() -> None:
    rig = OutboxRig()
    for number in range(3):
        rig.outbox.put(accepted(number))
    events = await rig.take(3)
    assert [(each.session, each.sequence, each.time_us) for each in events] == [
        ("s", 0, 1),
        ("s", 1, 1),
        ("s", 2, 1),
    ]


async def test_the_init_comes_before_the_first_chunk_and_after_a_change() -> None:
    rig = OutboxRig()
    rig.frames(0, 1)
    rig.outbox.put_frame(init(width=32), chunk(2))
    types = [each.type for each in await rig.take(5)]
    assert types == ["media.init", "media.chunk", "media.chunk", "media.init", "media.chunk"]


async def test_when_too_many_frames_wait_all_are_dropped_and_the_newest_follows() -> None:
    rig = OutboxRig(frames=3)
    rig.frames(0, 1, 2, 3)
    _, frame = await rig.take(2)
    assert isinstance(frame, MediaChunk)
    assert (frame.chunk, frame.dropped, frame.index) == (3, 3, 0)
    assert len(rig.outbox) == 0


async def test_frames_that_need_earlier_ones_wait_for_a_key_frame() -> None:
    rig = OutboxRig(frames=2)
    rig.frames(0)
    rig.frames(1, 2, 3, key=False)
    assert rig.keys_wanted == ["video"]
    rig.frames(4)
    _, frame = await rig.take(2)
    assert isinstance(frame, MediaChunk)
    assert (frame.chunk, frame.dropped) == (4, 4)


async def test_bytes_are_bounded_like_frames() -> None:
    rig = OutboxRig(bytes=20)
    for number in range(3):
        rig.outbox.put_frame(init(), chunk(number, size=8))
    _, frame = await rig.take(2)
    assert isinstance(frame, MediaChunk)
    assert frame.chunk == 2


async def test_an_old_frame_never_comes_after_the_event_of_the_cut() -> None:
    rig = OutboxRig()
    rig.frames(0, 1, 2)
    rig.outbox.cut("video", before_us=250)
    rig.outbox.put(accepted(0))
    rig.frames(2)  # still on its way through an encoder
    rig.frames(3)
    events = await rig.take_all()
    assert [each.type for each in events] == ["request.accepted", "media.init", "media.chunk"]
    assert isinstance(events[-1], MediaChunk)
    assert (events[-1].chunk, events[-1].dropped) == (3, 0)


async def test_the_end_of_a_stream_comes_once_and_last_with_what_was_sent() -> None:
    rig = OutboxRig()
    rig.frames(0, 1)
    rig.outbox.complete("video", "closed")
    rig.outbox.complete("video", "again")
    rig.frames(2)
    events = await rig.take_all()
    assert [each.type for each in events] == [
        "media.init",
        "media.chunk",
        "media.chunk",
        "media.complete",
    ]
    assert events[-1].type == "media.complete"
    assert (events[-1].reason, events[-1].chunks, events[-1].size_bytes) == ("closed", 2, 16)


async def test_a_stream_that_never_began_has_no_end() -> None:
    rig = OutboxRig()
    rig.outbox.complete("video", "closed")
    rig.outbox.put(accepted(0))
    (event,) = await rig.take(1)
    assert (event.type, event.sequence) == ("request.accepted", 0)


async def test_too_many_events_end_the_attachment_with_a_last_event() -> None:
    rig = OutboxRig(events=16)
    for number in range(20):
        rig.outbox.put(accepted(number))
    assert rig.overflows == 1
    events = await rig.take(17)
    assert events[-1].type == "error"
    with pytest.raises(AttachmentEndedError, match="slow_viewer"):
        await rig.outbox.take()


async def test_an_endless_outbox_forgets_its_oldest_events_instead() -> None:
    rig = OutboxRig(events=3, endless=True)
    for number in range(10):
        rig.outbox.put(accepted(number))
    events = await rig.take(3)
    assert [each.command for each in events if each.type == "request.accepted"] == [
        "c7",
        "c8",
        "c9",
    ]
    assert [each.sequence for each in events] == [0, 1, 2]


async def test_nothing_comes_in_after_the_end() -> None:
    rig = OutboxRig()
    rig.outbox.end("closed", SessionClosed(reason="closed"))
    rig.outbox.put(accepted(0))
    rig.frames(0)
    (event,) = await rig.take(1)
    assert event.type == "session.closed"
    with pytest.raises(AttachmentEndedError):
        await rig.outbox.take()


async def test_a_cancelled_take_takes_nothing() -> None:
    rig = OutboxRig()
    waiting = asyncio.ensure_future(rig.outbox.take())
    await asyncio.sleep(0)
    rig.outbox.put(accepted(0))
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    (event,) = await rig.take(1)
    assert event.sequence == 0


async def test_it_knows_since_when_nothing_was_taken() -> None:
    rig = OutboxRig()
    rig.clock.advance(1)
    rig.outbox.put(accepted(0))
    rig.clock.advance(1)
    rig.outbox.put(accepted(1))
    assert rig.outbox.moved_us == 1_000_001
    await rig.take(1)
    assert rig.outbox.moved_us == 2_000_001


Move = st.sampled_from(["frame", "key", "event", "take", "cut", "complete"])


@given(st.lists(Move, max_size=60), st.integers(1, 4))
@settings(deadline=None)
async def test_whatever_happens_the_numbers_have_no_gap_and_the_bounds_hold(
    moves: list[str], frames: int
) -> None:
    rig = OutboxRig(frames=frames, events=16)
    taken: list[AnyEvent] = []
    for number, move in enumerate(moves, 1):
        match move:
            case "frame" | "key":
                rig.frames(number, key=move == "key")
            case "event":
                rig.outbox.put(accepted(number))
            case "cut":
                rig.outbox.cut("video", number * 100)
            case "complete":
                rig.outbox.complete("video", "closed")
            case _ if len(rig.outbox):
                taken += await rig.take_all()
        assert len(rig.outbox) <= frames + 18
    taken += await rig.take_all()
    assert [each.sequence for each in taken] == list(range(len(taken)))
    media = [each for each in taken if each.type.startswith("media.")]
    chunks = [each for each in media if isinstance(each, MediaChunk)]
    assert [each.index for each in chunks] == list(range(len(chunks)))
    assert [each.type for each in media[:1]] in ([], ["media.init"])
    assert [each.type for each in media].count("media.complete") <= 1
    assert "media.complete" not in [each.type for each in media[:-1]]
    _assert_decodable(chunks)


def _assert_decodable(chunks: list[MediaChunk]) -> None:
    """After a gap the next frame is a key frame, unless a cut made the gap."""
    for chunk in chunks:
        if chunk.dropped:
            assert chunk.key


async def test_a_sender_that_causes_events_waits_until_few_of_them_wait() -> None:
    rig = OutboxRig(events=32)
    for number in range(3):
        rig.outbox.put(RequestAccepted(command=f"n{number}"))
        rig.outbox.put_frame(init(), chunk(number))
    waiting = asyncio.create_task(rig.outbox.has_room())
    await asyncio.sleep(0)
    assert not waiting.done()
    await rig.outbox.take()
    await asyncio.wait_for(waiting, 20)
    rig.outbox.put(RequestAccepted(command="more"))
    waiting = asyncio.create_task(rig.outbox.has_room())
    await asyncio.sleep(0)
    assert not waiting.done()
    rig.outbox.abandon("detached")
    await asyncio.wait_for(waiting, 20)


def heard(number: int, stream: str = "sound", dropped: int = 0) -> MediaChunk:
    return MediaChunk(
        stream=stream,
        index=0,
        pts_us=number * 20_000,
        duration_us=20_000,
        key=True,
        chunk=number,
        frame=0,
        last=False,
        step=number,
        dropped=dropped,
        size_bytes=8,
        data=bytes(8),
    )


def sound_init(stream: str = "sound") -> MediaInit:
    return MediaInit(
        stream=stream,
        kind="audio",
        codec="opus",
        container="opus",
        rate_hz=48_000.0,
        channels=1,
        seed=7,
    )


async def test_of_too_much_sound_the_oldest_gives_way_and_the_next_packet_counts_it() -> None:
    rig = OutboxRig(packets=3, frames=2)
    for number in range(10):
        rig.outbox.put_frame(sound_init(), heard(number, dropped=int(number == 7)))
    events = [event for event in await rig.take_all() if isinstance(event, MediaChunk)]
    assert [event.chunk for event in events] == [7, 8, 9]
    assert [event.dropped for event in events] == [8, 0, 0]  # one was lost before it came in
    assert [event.discontinuity for event in events] == [True, False, False]
    assert [event.index for event in events] == [0, 1, 2]
    assert rig.outbox.skipped == 7
    assert rig.keys_wanted == []


async def test_sound_and_pictures_do_not_push_each_other_out() -> None:
    rig = OutboxRig(packets=4, frames=2)
    for number in range(4):
        rig.outbox.put_frame(sound_init(), heard(number))
        rig.outbox.put_frame(sound_init("voice"), heard(number, "voice"))
    rig.frames(0, 1, 2)
    events = [event for event in await rig.take_all() if isinstance(event, MediaChunk)]
    assert [event.chunk for event in events if event.stream == "sound"] == [0, 1, 2, 3]
    assert [event.chunk for event in events if event.stream == "voice"] == [0, 1, 2, 3]
    assert [event.chunk for event in events if event.stream == "video"] == [2]
    assert len(rig.outbox) == 0


async def test_packets_count_as_media_and_not_as_events() -> None:
    rig = OutboxRig(packets=100, events=16)
    for number in range(50):
        rig.outbox.put_frame(sound_init(), heard(number))
    for number in range(16):
        rig.outbox.put(accepted(number))
    assert rig.overflows == 0
    rig.outbox.drop_media()
    assert len(rig.outbox) == 16


async def test_a_cut_silences_what_waits() -> None:
    rig = OutboxRig()
    for number in range(5):
        rig.outbox.put_frame(sound_init(), heard(number))
    rig.outbox.cut("sound", 60_000)
    rig.outbox.put_frame(sound_init(), heard(1))
    events = [event for event in await rig.take_all() if isinstance(event, MediaChunk)]
    assert [event.chunk for event in events] == [3, 4]
    assert not any(event.dropped for event in events)
