"""What waits to be decoded: bounded in pieces and bytes, by the rule of its stream."""

import asyncio

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.media import RawVideo
from reverie.models.contract.controls import Merge
from reverie.sessions.protocol.errors import CommandError
from reverie.sessions.streams.input_queue import InputQueue, MediaPush


def pushed(number: int, codec: str = "jpeg", size: int = 10) -> MediaPush:
    return MediaPush(RawVideo(bytes(size), number, codec), f"c{number}", lambda error: None)


def numbers(items: tuple[MediaPush, ...]) -> list[int]:
    return [each.raw.pts_us for each in items]


def test_of_a_camera_the_newest_picture_takes_the_place_of_those_before() -> None:
    queue = InputQueue(Merge.LATEST, 4, 1000)
    assert queue.put(pushed(1)) == ()
    assert numbers(queue.put(pushed(2))) == [1]
    assert len(queue) == 1


def test_what_later_frames_are_decoded_from_never_gives_way() -> None:
    queue = InputQueue(Merge.LATEST, 3, 1000)
    for number in range(3):
        assert queue.put(pushed(number, "h264")) == ()
    with pytest.raises(CommandError) as refused:
        queue.put(pushed(3, "h264"))
    assert refused.value.code == "too_many"
    assert refused.value.retry_after_s


def test_a_clip_keeps_all_and_refuses_what_has_no_room() -> None:
    queue = InputQueue(Merge.FIFO, 2, 1000)
    queue.put(pushed(1))
    queue.put(pushed(2))
    with pytest.raises(CommandError, match="input_pieces"):
        queue.put(pushed(3))
    assert numbers(queue.take_all()) == [1, 2]


def test_bytes_are_counted_whatever_they_are_in() -> None:
    queue = InputQueue(Merge.FIFO, 100, 3000)
    queue.put(MediaPush(RawVideo(np.zeros((10, 10, 3), np.uint8), 0), "", lambda error: None))
    queue.put(pushed(1, size=2700))
    with pytest.raises(CommandError, match="input_bytes"):
        queue.put(pushed(2, size=1))


def test_what_is_too_large_drives_nothing_out() -> None:
    queue = InputQueue(Merge.LATEST, 4, 100)
    queue.put(pushed(1))
    with pytest.raises(CommandError, match="input_bytes"):
        queue.put(pushed(2, size=101))
    assert numbers(queue.take_all()) == [1]


async def test_taking_waits_and_a_cancelled_wait_takes_nothing() -> None:
    queue = InputQueue(Merge.FIFO, 2, 1000)
    waiting = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    queue.put(pushed(7))
    assert (await queue.take()).raw.pts_us == 7


@given(
    merge=st.sampled_from([Merge.LATEST, Merge.FIFO]),
    moves=st.lists(st.tuples(st.sampled_from(["jpeg", "h264", "take"]), st.integers(0, 120))),
)
def test_whatever_is_pushed_it_is_bounded_in_order_and_accounted_for(
    merge: Merge, moves: list[tuple[str, int]]
) -> None:
    queue = InputQueue(merge, 4, 100)
    given_in, out, gone, refused = [], [], [], []
    for number, (move, size) in enumerate(moves):
        if move == "take":
            out += numbers(queue.take_all())
            continue
        given_in.append(number)
        try:
            gone += numbers(queue.put(pushed(number, move, size)))
        except CommandError:
            refused.append(number)
        assert len(queue) <= 4
        assert sum(each.raw.size_bytes for each in queue._waiting) <= 100
    out += numbers(queue.take_all())
    assert out == sorted(out)
    assert sorted(out + gone + refused) == given_in
    if merge is Merge.FIFO:
        assert not gone
