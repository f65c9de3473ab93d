"""The bitrate follows what the line drains, and tries more ever more rarely where that fails."""

import itertools

from reverie.rtc.websocket.bitrate_search import (
    FIRST_TRY_US,
    LEAST_BITS,
    LONGEST_TRY_US,
    MOST_BITS,
    STEP,
    BitrateSearch,
)

STEP_US = 20_000


class Trial:
    """A search on a line that falls behind as soon as pictures take more than `line_bits`."""

    def __init__(self, line_bits: float, wanted_bits: float = 3_000_000) -> None:
        self.search = BitrateSearch()
        self.line_bits = line_bits
        self.wanted_bits = wanted_bits
        self.now_us = 0
        self.picture_bytes = 0.0
        self.changes: list[tuple[int, int | None]] = []

    def run(self, seconds: float) -> None:
        until_us = self.now_us + seconds * 1e6
        while self.now_us < until_us:
            self.now_us += STEP_US
            limit = self.search.bits_per_s
            sent = self.wanted_bits if limit is None else min(limit, self.wanted_bits)
            self.picture_bytes += min(sent, self.line_bits) / 8 * STEP_US / 1e6
            behind = sent > self.line_bits
            drained = self.line_bits if behind else None
            self.search.note(behind, drained, round(self.picture_bytes), self.now_us)
            if self.search.bits_per_s != limit:
                self.changes.append((self.now_us, self.search.bits_per_s))


def test_a_line_that_is_never_behind_is_not_limited() -> None:
    trial = Trial(10_000_000)
    trial.run(60)
    assert trial.changes == []


def test_a_line_that_falls_behind_is_given_less_than_it_drains_within_a_second() -> None:
    trial = Trial(500_000)
    trial.run(1)
    limit = trial.search.bits_per_s
    assert limit is not None
    assert 350_000 < limit < 500_000


def test_more_is_tried_and_after_each_failure_later() -> None:
    trial = Trial(500_000)
    trial.run(120)
    raises = [
        at_us
        for (_, before), (at_us, after) in itertools.pairwise(trial.changes)
        if before is not None and after is not None and after > before
    ]
    pauses = [after - before for before, after in itertools.pairwise(raises)]
    assert pauses[0] < 2 * FIRST_TRY_US + 1_000_000
    assert max(pauses) > LONGEST_TRY_US / 2
    assert len(raises) < 20


def test_a_line_that_has_become_better_is_used_again() -> None:
    trial = Trial(500_000)
    trial.run(3)
    trial.line_bits = 20_000_000
    trial.run(60)
    assert (trial.search.bits_per_s or MOST_BITS) >= 3_000_000


def test_a_limit_that_is_not_used_is_not_raised() -> None:
    trial = Trial(500_000)
    trial.run(1)
    limit = trial.search.bits_per_s
    trial.wanted_bits = 20_000
    trial.run(60)
    assert trial.search.bits_per_s == limit


def test_one_large_frame_lowers_nothing() -> None:
    search = BitrateSearch()
    for step in range(500):
        behind = step % 50 < 4  # 80 ms of each second
        search.note(behind, 500_000, step * 2_000, step * STEP_US)
    assert search.bits_per_s is None


def test_a_line_that_drains_nothing_gets_the_least_and_no_less() -> None:
    search = BitrateSearch()
    for step in range(500):
        search.note(True, 0.0, 0, step * STEP_US)
    assert search.bits_per_s == LEAST_BITS
    assert STEP > 1
