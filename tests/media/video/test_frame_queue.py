"""The queue in front of the encoders."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reverie.media.types import FrameTag
from reverie.media.video.frame_queue import DropOldestFrames

PICTURE = np.zeros((1, 1, 3), dtype=np.uint8)


def tag(number: int, *, discontinuity: bool = False) -> FrameTag:
    return FrameTag(number, 1, number, 0, True, number, discontinuity)


def test_frames_come_out_in_order() -> None:
    queue = DropOldestFrames(4)
    for number in range(4):
        queue.put(PICTURE, tag(number))
    assert [queue.take().tag.chunk for _ in range(4)] == [0, 1, 2, 3]
    assert queue.dropped == 0


def test_the_oldest_gives_way_and_its_heir_counts_it() -> None:
    queue = DropOldestFrames(2)
    for number in range(5):
        queue.put(PICTURE, tag(number))
    heir, last = queue.take(), queue.take()
    assert (heir.tag.chunk, heir.dropped) == (3, 3)
    assert (last.tag.chunk, last.dropped) == (4, 0)
    assert queue.dropped == 3


def test_a_lost_discontinuity_is_inherited() -> None:
    queue = DropOldestFrames(1)
    queue.put(PICTURE, tag(0, discontinuity=True))
    queue.put(PICTURE, tag(1))
    queue.put(PICTURE, tag(2))
    assert queue.take().tag.discontinuity


def test_cleared_frames_are_not_counted_as_dropped() -> None:
    queue = DropOldestFrames(2)
    queue.put(PICTURE, tag(0))
    queue.clear()
    assert (len(queue), queue.dropped) == (0, 0)


@given(capacity=st.integers(1, 5), takes=st.lists(st.booleans(), max_size=60))
def test_every_frame_is_taken_waiting_or_counted(capacity: int, takes: list[bool]) -> None:
    queue, put, taken, counted = DropOldestFrames(capacity), 0, 0, 0
    for take in takes:
        if take and len(queue):
            taken, counted = taken + 1, counted + queue.take().dropped
        elif not take:
            queue.put(PICTURE, tag(put))
            put += 1
        assert len(queue) <= capacity
        assert put == taken + len(queue) + queue.dropped
    waiting = [queue.take() for _ in range(len(queue))]
    assert counted + sum(frame.dropped for frame in waiting) == queue.dropped
