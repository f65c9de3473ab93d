"""One stream, many watchers."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
import pytest
from gated_encoder import GatedEncoders
from pictures import H264Decoder, decode_jpeg, numbered, read_number

from reverie.media import (
    Codec,
    EncodeError,
    FrameTag,
    MediaFrame,
    Size,
    UnsupportedPictureError,
    VideoFanout,
)

FRAME_US = 66_667


def tag(number: int, *, discontinuity: bool = False) -> FrameTag:
    return FrameTag(number * FRAME_US, FRAME_US, number, 0, True, number, discontinuity)


@asynccontextmanager
async def running(
    encoders: GatedEncoders | None = None, *, queue_frames: int = 64, encode_limit_s: float = 20
) -> AsyncIterator[VideoFanout]:
    """Run a fan-out until the block ends; its failure ends the block."""
    fanout = VideoFanout(
        15,
        queue_frames=queue_frames,
        encode_limit_s=encode_limit_s,
        open_encoder=(encoders or GatedEncoders()).open,
    )
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(fanout.run(), name="encode")
        yield fanout
        fanout.close()


async def reached(event: threading.Event) -> None:
    """Wait for another thread, without holding the loop."""
    async with asyncio.timeout(20):
        while not event.is_set():
            await asyncio.sleep(0.001)


def numbers(frames: list[MediaFrame]) -> list[int]:
    decoder = H264Decoder()
    return [read_number(decoder.decode(frame.encoded.data)) for frame in frames]


def chunks(frames: list[MediaFrame]) -> list[int]:
    return [frame.tag.chunk for frame in frames]


def keys(frames: list[MediaFrame]) -> list[int]:
    return [frame.tag.chunk for frame in frames if frame.encoded.key]


async def test_every_frame_arrives_once_and_in_order() -> None:
    seen: list[MediaFrame] = []
    async with running() as fanout:
        fanout.subscribe(Codec.H264, seen.append)
        for number in range(50):
            fanout.publish(numbered(number), tag(number))
        await fanout.drain()
    assert numbers(seen) == chunks(seen) == list(range(50))
    assert keys(seen) == [0]


async def test_watchers_of_one_codec_and_size_share_one_encoder() -> None:
    encoders, first, second = GatedEncoders(), list[MediaFrame](), list[MediaFrame]()
    async with running(encoders) as fanout:
        fanout.subscribe(Codec.H264, first.append)
        fanout.subscribe(Codec.H264, second.append)
        for number in range(5):
            fanout.publish(numbered(number), tag(number))
        await fanout.drain()
    assert encoders.opened == {Codec.H264: 1}
    assert [id(frame.encoded) for frame in first] == [id(frame.encoded) for frame in second]


async def test_codecs_and_sizes_are_served_side_by_side() -> None:
    h264, jpeg, small = list[MediaFrame](), list[MediaFrame](), list[MediaFrame]()
    async with running() as fanout:
        fanout.subscribe(Codec.H264, h264.append)
        fanout.subscribe(Codec.JPEG, jpeg.append)
        fanout.subscribe(Codec.JPEG, small.append, Size(40, 24))
        for number in range(5):
            fanout.publish(numbered(number), tag(number))
        await fanout.drain()
    assert numbers(h264) == [read_number(decode_jpeg(frame.encoded.data)) for frame in jpeg]
    assert decode_jpeg(small[-1].encoded.data).shape == (24, 40, 3)
    assert read_number(decode_jpeg(small[-1].encoded.data)) == 4


async def test_encoding_never_happens_on_the_event_loop() -> None:
    encoders = GatedEncoders()
    async with running(encoders) as fanout:
        fanout.subscribe(Codec.H264, lambda frame: None)
        fanout.publish(numbered(1), tag(1))
        await fanout.drain()
        fanout.subscribe(Codec.JPEG, lambda frame: None)
        await fanout.drain()
    assert len(encoders.threads) == 1
    assert threading.current_thread().name not in encoders.threads


async def test_a_buffer_that_is_used_again_tears_no_frame_while_the_encoder_is_slow() -> None:
    encoders, seen = GatedEncoders(), list[MediaFrame]()
    buffer = np.empty((128, 128, 3), dtype=np.uint8)
    async with running(encoders) as fanout:
        fanout.subscribe(Codec.H264, seen.append)
        encoders.gate.clear()
        for number in range(30):
            buffer[:] = numbered(number)
            fanout.publish(buffer, tag(number))
            if number == 0:
                await reached(encoders.encoding)
        buffer[:] = 0
        encoders.gate.set()
        await fanout.drain()
    assert numbers(seen) == chunks(seen) == list(range(30))


async def test_when_the_encoder_falls_behind_the_oldest_frames_are_lost_and_counted() -> None:
    encoders, seen = GatedEncoders(), list[MediaFrame]()
    async with running(encoders, queue_frames=4) as fanout:
        fanout.subscribe(Codec.H264, seen.append)
        encoders.gate.clear()
        fanout.publish(numbered(0), tag(0))
        await reached(encoders.encoding)
        for number in range(1, 20):
            fanout.publish(numbered(number), tag(number))
        encoders.gate.set()
        await fanout.drain()
        assert fanout.dropped == 15
    assert numbers(seen) == chunks(seen) == [0, 16, 17, 18, 19]
    assert [frame.dropped for frame in seen] == [0, 15, 0, 0, 0]


async def test_flush_drops_what_waits_and_what_a_thread_is_encoding() -> None:
    encoders, seen = GatedEncoders(), list[MediaFrame]()
    async with running(encoders) as fanout:
        fanout.subscribe(Codec.H264, seen.append)
        fanout.publish(numbered(0), tag(0))
        await fanout.drain()
        encoders.gate.clear()
        encoders.encoding.clear()
        for number in range(1, 31):
            fanout.publish(numbered(number), tag(number))
        await reached(encoders.encoding)
        fanout.flush()
        fanout.publish(numbered(100), tag(100))
        encoders.gate.set()
        await fanout.drain()
    assert numbers(seen) == chunks(seen) == [0, 100]
    assert keys(seen) == [0, 100]
    assert fanout.dropped == 0


async def test_a_discontinuity_is_a_key_frame() -> None:
    seen: list[MediaFrame] = []
    async with running() as fanout:
        fanout.subscribe(Codec.H264, seen.append)
        for number in range(6):
            fanout.publish(numbered(number), tag(number, discontinuity=number == 3))
        await fanout.drain()
    assert keys(seen) == [0, 3]


async def test_a_late_watcher_begins_with_a_key_frame_and_can_decode_from_there() -> None:
    early, late = list[MediaFrame](), list[MediaFrame]()
    async with running() as fanout:
        fanout.subscribe(Codec.H264, early.append)
        for number in range(3):
            fanout.publish(numbered(number), tag(number))
        await fanout.drain()
        fanout.subscribe(Codec.H264, late.append)
        for number in range(3, 6):
            fanout.publish(numbered(number), tag(number))
        await fanout.drain()
    assert numbers(late) == chunks(late) == [3, 4, 5]
    assert numbers(early) == list(range(6))
    assert keys(early) == [0, 3]


async def test_a_late_watcher_of_a_resting_stream_sees_its_newest_picture_alone() -> None:
    early, late = list[MediaFrame](), list[MediaFrame]()
    async with running() as fanout:
        fanout.subscribe(Codec.H264, early.append)
        fanout.publish(numbered(7), tag(7))
        await fanout.drain()
        fanout.subscribe(Codec.H264, late.append)
        await fanout.drain()
        assert numbers(late) == chunks(late) == keys(late) == [7]
        fanout.publish(numbered(8), tag(8))
        await fanout.drain()
    assert numbers(late) == keys(late) == [7, 8]
    assert numbers(early) == [7, 8]


async def test_a_watcher_that_joins_during_an_encode_gets_no_frame_it_cannot_decode() -> None:
    encoders, late = GatedEncoders(), list[MediaFrame]()
    async with running(encoders) as fanout:
        fanout.subscribe(Codec.H264, lambda frame: None)
        fanout.publish(numbered(0), tag(0))
        await fanout.drain()
        encoders.gate.clear()
        encoders.encoding.clear()
        fanout.publish(numbered(1), tag(1))
        await reached(encoders.encoding)
        fanout.subscribe(Codec.H264, late.append)
        fanout.publish(numbered(2), tag(2))
        encoders.gate.set()
        await fanout.drain()
    assert numbers(late) == keys(late) == [2]


async def test_after_a_flush_a_newcomer_is_not_shown_what_was_taken_back() -> None:
    late: list[MediaFrame] = []
    async with running() as fanout:
        fanout.publish(numbered(1), tag(1))
        await fanout.drain()
        fanout.flush()
        fanout.subscribe(Codec.H264, late.append)
        await fanout.drain()
    assert late == []


async def test_requests_for_key_frames_coalesce() -> None:
    seen: list[MediaFrame] = []
    async with running() as fanout:
        subscription = fanout.subscribe(Codec.H264, seen.append)
        for number in range(45):
            for _ in range(10):
                subscription.request_key_frame()
            fanout.publish(numbered(number), tag(number))
            await fanout.drain()
    assert keys(seen) == list(range(0, 45, 4))


async def test_a_lone_request_for_a_key_frame_is_met_by_the_next_frame() -> None:
    seen: list[MediaFrame] = []
    async with running() as fanout:
        subscription = fanout.subscribe(Codec.H264, seen.append)
        for number in range(8):
            if number == 6:
                subscription.request_key_frame()
            fanout.publish(numbered(number), tag(number))
            await fanout.drain()
    assert keys(seen) == [0, 6]


async def test_a_closed_subscription_is_handed_nothing_and_the_last_one_frees_the_encoder() -> None:
    encoders, seen = GatedEncoders(), list[MediaFrame]()
    async with running(encoders) as fanout:
        subscription = fanout.subscribe(Codec.H264, seen.append)
        fanout.publish(numbered(0), tag(0))
        await fanout.drain()
        subscription.close()
        subscription.close()
        subscription.request_key_frame()
        fanout.publish(numbered(1), tag(1))
        await fanout.drain()
        assert (fanout.watchers, encoders.live) == (0, 0)
    assert chunks(seen) == [0]


async def test_a_watcher_that_leaves_during_an_encode_is_handed_nothing_more() -> None:
    encoders, seen = GatedEncoders(), list[MediaFrame]()
    async with running(encoders) as fanout:
        subscription = fanout.subscribe(Codec.H264, seen.append)
        encoders.gate.clear()
        fanout.publish(numbered(0), tag(0))
        await reached(encoders.encoding)
        subscription.close()
        encoders.gate.set()
        await fanout.drain()
    assert seen == []


async def test_a_watcher_may_leave_while_it_is_handed_a_frame() -> None:
    first, second = list[MediaFrame](), list[MediaFrame]()
    async with running() as fanout:

        def deliver(frame: MediaFrame) -> None:
            first.append(frame)
            leaving.close()

        leaving = fanout.subscribe(Codec.H264, deliver)
        fanout.subscribe(Codec.H264, second.append)
        for number in range(3):
            fanout.publish(numbered(number), tag(number))
        await fanout.drain()
    assert (chunks(first), chunks(second)) == ([0], [0, 1, 2])


async def test_a_change_of_size_opens_a_new_encoder_and_names_the_new_format() -> None:
    encoders, seen = GatedEncoders(), list[MediaFrame]()
    async with running(encoders) as fanout:
        fanout.subscribe(Codec.H264, seen.append)
        for number, width in enumerate((128, 128, 320, 128)):
            fanout.publish(numbered(number, width), tag(number))
        await fanout.drain()
        assert encoders.live == 1
    assert [frame.encoded.format.width for frame in seen] == [128, 128, 320, 128]
    assert keys(seen) == [0, 2, 3]


async def test_a_failing_encoder_ends_the_run_with_a_typed_error() -> None:
    encoders, seen = GatedEncoders(), list[MediaFrame]()
    encoders.fails_at_us = 3 * FRAME_US
    with pytest.RaisesGroup(pytest.RaisesExc(EncodeError, match="the encoder broke")):
        async with running(encoders) as fanout:
            fanout.subscribe(Codec.H264, seen.append)
            for number in range(6):
                fanout.publish(numbered(number), tag(number))
            async with asyncio.timeout(20):
                await fanout.drain()
                await asyncio.Event().wait()
    assert chunks(seen) == [0, 1, 2]


async def test_an_encoder_that_hangs_is_an_error_and_not_a_frozen_picture() -> None:
    encoders = GatedEncoders()
    encoders.gate.clear()
    with pytest.RaisesGroup(pytest.RaisesExc(EncodeError, match="took over")):
        async with running(encoders, encode_limit_s=0.05) as fanout:
            fanout.subscribe(Codec.H264, lambda frame: None)
            fanout.publish(numbered(0), tag(0))
            async with asyncio.timeout(20):
                await asyncio.Event().wait()
    encoders.gate.set()


async def test_a_picture_that_no_codec_takes_is_refused_where_it_is_published() -> None:
    async with running() as fanout:
        with pytest.raises(UnsupportedPictureError):
            fanout.publish(np.zeros((4, 4, 4), dtype=np.uint8), tag(0))


async def test_closing_ends_the_run_frees_the_encoders_and_ends_the_thread() -> None:
    encoders = GatedEncoders()
    async with running(encoders) as fanout:
        fanout.subscribe(Codec.H264, lambda frame: None)
        fanout.publish(numbered(0), tag(0))
        await fanout.drain()
    fanout.close()
    fanout.publish(numbered(1), tag(1))
    async with asyncio.timeout(20):
        await fanout.drain()
        while encoders.live or any(
            thread.name in encoders.threads for thread in threading.enumerate()
        ):
            await asyncio.sleep(0.001)


async def test_a_fanout_that_nobody_watches_encodes_nothing() -> None:
    encoders = GatedEncoders()
    async with running(encoders) as fanout:
        for number in range(5):
            fanout.publish(numbered(number), tag(number))
        await fanout.drain()
    assert not encoders.opened
