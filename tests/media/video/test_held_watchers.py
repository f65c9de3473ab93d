"""A watcher whose line is behind gets fewer pictures, each of them new, and holds up no other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fake_clock import FakeClock
from gated_encoder import GatedEncoders
from pictures import H264Decoder, numbered, read_number

from reverie.media import Codec, FrameTag, MediaFrame, VideoFanout
from reverie.media.video.video_fanout import LATE_US

FRAME_US = 40_000


def tag(number: int) -> FrameTag:
    return FrameTag(number * FRAME_US, FRAME_US, number, 0, True, number)


class Stage:
    """A fan-out on a clock that the test moves."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.encoders = GatedEncoders()
        self.fanout = VideoFanout(25, open_encoder=self.encoders.open, clock=self.clock)
        self.count = 0

    async def publish(self, frames: int) -> None:
        """Publish frames, each at its time."""
        for _ in range(frames):
            self.fanout.publish(numbered(self.count), tag(self.count))
            await self.fanout.drain()
            self.count += 1
            self.clock.advance(FRAME_US / 1e6)


@asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    found = Stage()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(found.fanout.run(), name="encode")
        yield found
        found.fanout.close()


def numbers(frames: list[MediaFrame]) -> list[int]:
    decoder = H264Decoder()
    return [read_number(decoder.decode(frame.encoded.data)) for frame in frames]


async def test_frames_wait_unencoded_and_late_ones_give_way_without_a_key_frame() -> None:
    seen: list[MediaFrame] = []
    async with stage() as found:
        subscription = found.fanout.subscribe(Codec.H264, seen.append)
        await found.publish(3)
        subscription.hold(True)
        await found.publish(20)
        assert len(seen) == 3
        subscription.hold(False)
        await found.fanout.drain()
        await found.publish(2)
    shown = numbers(seen)
    waited = LATE_US // FRAME_US
    assert shown == [0, 1, 2, *range(23 - waited, 25)]
    assert [frame.encoded.key for frame in seen] == [True] + [False] * (len(seen) - 1)
    assert sum(frame.dropped for frame in seen) == 25 - len(seen)


async def test_the_newest_frame_is_shown_however_long_it_waited() -> None:
    seen: list[MediaFrame] = []
    async with stage() as found:
        subscription = found.fanout.subscribe(Codec.H264, seen.append)
        await found.publish(1)
        subscription.hold(True)
        await found.publish(5)
        found.clock.advance(60)
        subscription.hold(False)
        await found.fanout.drain()
    assert numbers(seen) == [0, 5]


async def test_the_frames_of_a_chunk_may_wait_until_they_are_due() -> None:
    seen: list[MediaFrame] = []
    async with stage() as found:
        subscription = found.fanout.subscribe(Codec.H264, seen.append)
        subscription.hold(True)
        for number in range(12):  # half a second of one chunk, at once
            given = FrameTag(number * FRAME_US, FRAME_US, 0, number, number == 11, 0)
            found.fanout.publish(numbered(number), given)
        found.clock.advance(0.09)
        subscription.hold(False)
        await found.fanout.drain()
    assert numbers(seen) == list(range(12))


async def test_a_watcher_on_a_free_line_gets_all_while_another_is_held() -> None:
    free, slow = list[MediaFrame](), list[MediaFrame]()
    async with stage() as found:
        found.fanout.subscribe(Codec.H264, free.append)
        held = found.fanout.subscribe(Codec.H264, slow.append)
        await found.publish(3)
        held.hold(True)
        await found.publish(10)
        assert len(slow) == 3
        held.hold(False)
        await found.fanout.drain()
        assert numbers(slow) == [0, 1, 2, 12], "the newest picture comes at once"
        await found.publish(5)
    assert numbers(free) == list(range(18))
    assert numbers(slow) == [0, 1, 2, 12, *range(13, 18)]
    assert found.encoders.opened == {Codec.H264: 2}, "the stream, and one still picture"
    assert sum(frame.dropped for frame in slow) == 10


async def test_what_only_follows_keeps_nothing_going() -> None:
    recorded, seen = list[MediaFrame](), list[MediaFrame]()
    async with stage() as found:
        found.fanout.subscribe(Codec.H264, recorded.append, follows=True)
        subscription = found.fanout.subscribe(Codec.H264, seen.append)
        await found.publish(2)
        subscription.hold(True)
        await found.publish(10)
        assert len(recorded) == len(seen) == 2
        subscription.close()
        await found.fanout.drain()
        await found.publish(1)
    assert numbers(recorded)[-1] == 12


async def test_what_was_held_is_gone_after_a_flush() -> None:
    seen: list[MediaFrame] = []
    async with stage() as found:
        subscription = found.fanout.subscribe(Codec.H264, seen.append)
        await found.publish(2)
        subscription.hold(True)
        await found.publish(2)
        found.fanout.flush()
        subscription.hold(False)
        await found.fanout.drain()
        await found.publish(1)
    assert numbers(seen) == [0, 1, 4]


async def test_a_watcher_that_is_held_again_and_again_costs_the_others_few_key_frames() -> None:
    free, slow = list[MediaFrame](), list[MediaFrame]()
    async with stage() as found:
        found.fanout.subscribe(Codec.H264, free.append)
        held = found.fanout.subscribe(Codec.H264, slow.append)
        await found.publish(1)
        for _ in range(20):  # five seconds
            held.hold(True)
            await found.publish(5)
            held.hold(False)
            await found.fanout.drain()
    assert sum(frame.encoded.key for frame in free) <= 10
    assert numbers(slow)[1:] == sorted(numbers(slow)[1:])
    assert len(slow) > 20, "it is shown a picture each time"
