"""Whether the server still takes a track, by what it reports."""

from collections.abc import Iterable, Iterator

import pytest

from reverie.rtc.livekit.reports import SILENT_CHECKS, ReportWatch, Traffic

MANY = 5 * SILENT_CHECKS


def judged(traffic: Iterable[Traffic]) -> Iterator[bool]:
    watch = ReportWatch()
    return (watch.is_taken(each) for each in traffic)


def test_a_track_on_which_reports_cease_while_it_is_sent_is_no_longer_taken() -> None:
    verdicts = list(judged(Traffic((7, 1), 10 * i, i) for i in range(SILENT_CHECKS + 1)))
    assert verdicts == [True] * SILENT_CHECKS + [False]


def test_a_report_now_and_then_is_enough() -> None:
    every = SILENT_CHECKS  # the others between two are silent
    assert all(judged(Traffic((i // every, 1), 10 * i, i) for i in range(MANY)))


@pytest.mark.parametrize(
    ("reported", "sent", "answered"),
    [((7, 1), 0, 1), ((7, 1), 1, 0), (None, 1, 1)],
    ids=["it rests", "the connection hangs", "the server never reports"],
)
def test_silence_alone_proves_nothing(
    reported: tuple[int, int] | None, sent: int, answered: int
) -> None:
    assert all(judged(Traffic(reported, sent * i, answered * i) for i in range(MANY)))
