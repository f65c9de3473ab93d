"""Descriptions that a channel cannot take are left out, and counted."""

from reverie.rtc.webrtc.untold_chunks import RARELY_US, UntoldChunks
from reverie.sessions.protocol.media_events import MediaChunk


def chunk(index: int, *, last: bool = True, dropped: int = 0, stream: str = "video") -> MediaChunk:
    return MediaChunk(
        stream=stream, index=index, pts_us=index, duration_us=1, key=False, chunk=index, frame=0,
        last=last, step=index, size_bytes=0, data=b"", dropped=dropped,
    )  # fmt: skip


def test_a_channel_that_keeps_up_is_told_all() -> None:
    untold = UntoldChunks()
    told = [untold.passed(chunk(n), n, behind=False) for n in range(5)]
    assert [each and (each.index, each.dropped) for each in told] == [(n, 0) for n in range(5)]


def test_what_was_left_out_counts_as_dropped_and_numbers_have_no_gap() -> None:
    untold = UntoldChunks()
    untold.passed(chunk(0), 0, behind=False)
    assert untold.passed(chunk(1), 1, behind=True) is None
    assert untold.passed(chunk(2, dropped=3), 2, behind=True) is None
    assert untold.passed(chunk(0, stream="voice"), 2, behind=False) == chunk(0, stream="voice")
    told = untold.passed(chunk(3), 3, behind=False)
    assert told is not None
    assert (told.index, told.dropped) == (1, 5)
    after = untold.passed(chunk(4), 4, behind=False)
    assert after is not None
    assert (after.index, after.dropped) == (2, 0)


def test_on_a_line_that_loses_much_ends_of_chunks_are_told_now_and_then() -> None:
    untold = UntoldChunks()
    every_us = RARELY_US // 6
    told = [
        untold.passed(chunk(n, last=n % 2 == 1), n * every_us, behind=False, lossy=True)
        for n in range(60)
    ]
    ends = [each for each in told if each is not None]
    assert all(each.last for each in ends)
    assert 8 <= len(ends) <= 10
    assert sum(each.dropped for each in ends) + len(ends) == 1 + max(
        n for n, each in enumerate(told) if each is not None
    )
