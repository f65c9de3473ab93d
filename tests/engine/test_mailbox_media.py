"""Pushed pictures and sound in a loop's mailbox: nothing is lost without a word."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stub_model import stub_request

from reverie.engine.emissions import ControlSuperseded
from reverie.engine.errors import UnknownControlError
from reverie.engine.inputs import ControlId, StreamInput
from reverie.engine.mailbox import SHOWN_AGAIN, Mailbox
from reverie.models.contract.controls import MediaInput, Merge
from reverie.models.contract.spec import InputSpec, LoopSpec, StreamKind, StreamSpec

VIDEO = StreamKind.VIDEO
LOOP = LoopSpec(
    "mirror",
    ("nothing",),
    (StreamSpec("video", VIDEO, 4, 4, 30.0),),
    inputs=(
        InputSpec("camera", VIDEO, Merge.LATEST, 2, 4, 4),
        InputSpec("clip", VIDEO, Merge.FIFO, 3, 4, 4, 30.0),
        InputSpec("heard", StreamKind.AUDIO, Merge.FIFO, 0, rate_hz=16_000),
    ),
)


def mailbox() -> tuple[Mailbox, list[ControlSuperseded]]:
    heard: list[ControlSuperseded] = []
    return Mailbox(stub_request(), LOOP, heard.append), heard


def picture(control: str, stream: str = "camera", pts_us: int = 0) -> StreamInput:
    data = np.zeros((4, 4, 3), np.uint8)
    return StreamInput(ControlId(control), stream, MediaInput(pts_us, data))


def times(box: Mailbox, stream: str) -> list[int]:
    return [media.pts_us for media in box.peek().media.get(stream, ())]


def test_of_a_camera_the_newest_are_kept_and_the_older_ones_are_told_by_whom() -> None:
    box, heard = mailbox()
    box.push([picture(f"p{number}", pts_us=number) for number in range(5)])
    assert times(box, "camera") == [3, 4]
    assert [(each.control, each.by) for each in heard] == [("p0", "p2"), ("p1", "p3"), ("p2", "p4")]


def test_of_a_clip_all_are_kept_and_what_is_too_much_is_told_so() -> None:
    box, heard = mailbox()
    box.push([picture(f"p{number}", "clip", number) for number in range(3 + SHOWN_AGAIN + 1)])
    assert [(each.control, each.by) for each in heard] == [(f"p{3 + SHOWN_AGAIN}", None)]


def test_a_step_takes_no_more_of_a_clip_than_its_capacity_and_receipts_wait_with_the_rest() -> None:
    box, heard = mailbox()
    box.push([picture(f"p{number}", "clip", number) for number in range(5)])
    assert times(box, "clip") == [0, 1, 2]
    first = box.take()
    assert first.receipts == ("p0", "p1", "p2")
    assert times(box, "clip") == [3, 4]
    box.put_back(first)
    assert times(box, "clip") == [0, 1, 2]
    assert box.take().receipts == ("p0", "p1", "p2")
    assert box.take().receipts == ("p3", "p4")
    assert not heard


def test_a_step_takes_what_waits_and_a_rollback_puts_it_before_what_has_come_since() -> None:
    box, heard = mailbox()
    box.push([picture("a", "clip", 1), picture("b", "clip", 2), picture("c", pts_us=3)])
    assert box.has_news
    taken = box.take()
    assert taken.receipts == ("a", "b", "c")
    assert not box.has_news
    assert not box.peek().media
    box.push([picture("d", "clip", 4), picture("e", pts_us=5)])
    box.put_back(taken)
    assert times(box, "clip") == [1, 2, 4]
    assert times(box, "camera") == [3, 5]
    assert not heard


def test_what_only_the_session_hears_and_what_no_loop_takes_is_refused() -> None:
    box, _ = mailbox()
    for stream in ("heard", "screen"):
        with pytest.raises(UnknownControlError, match=stream):
            box.push([picture("a", stream)])


def test_a_loop_that_ends_gives_up_what_waits() -> None:
    box, heard = mailbox()
    box.push([picture("a"), picture("b", "clip")])
    box.abandon()
    assert [(each.control, each.by) for each in heard] == [("a", None), ("b", None)]
    assert not box.peek().media


@given(st.lists(st.sampled_from(["camera", "clip", "take", "back"]), max_size=80))
def test_every_piece_has_one_end_and_what_waits_is_bounded(moves: list[str]) -> None:
    box, heard = mailbox()
    pushed: list[str] = []
    acted: list[str] = []
    number = 0
    taken = None
    for move in moves:
        if move == "take":
            acted += list(taken.receipts) if taken else []
            taken = box.take()
        elif move == "back" and taken is not None:
            box.put_back(taken)
            taken = None
        elif move in ("camera", "clip"):
            pushed.append(f"p{number}")
            box.push([picture(f"p{number}", move, number)])
            number += 1
        assert len(times(box, "camera")) <= 2
        assert times(box, "camera") == sorted(times(box, "camera"))
        assert len(times(box, "clip")) <= 3
    acted += list(taken.receipts) if taken else []
    while box.has_news:
        acted += list(box.take().receipts)
    lost: list[str] = [each.control for each in heard]
    assert sorted(acted + lost) == sorted(pushed)
