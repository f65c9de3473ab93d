"""What is made of the pictures that a browser has seen, and what they must reach."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from reverie.bench.machine import this_machine
from reverie.bench.over_line.goals import RowResult, goals_of
from reverie.bench.over_line.report import LineReport, as_line_table, write_line_json
from reverie.bench.over_line.rows import LineOptions, Row
from reverie.bench.over_line.toy_models import BUSY24, LONG24, SLOW24, STEP12, STEP24
from reverie.bench.over_line.turns import SideSummary, ViewerAnswer, ViewerTurn

SEEN = SideSummary(60.0, 1.0, 1.0, 90.0, 20.0, 30.0, 100.0, 150.0, 100, 20, 0)


def found(shown: list[tuple[float, float]], commands: list[float], unseen: int = 0) -> ViewerAnswer:
    """Return what a browser tells of a second without keys and a second with them."""
    return {
        "firstMs": 60.0 if shown else None,
        "shown": shown,
        "commands": commands,
        "unseen": unseen,
        "quietMs": 1000.0,
        "keysMs": 2000.0,
        "endMs": 3000.0,
    }


def test_rates_are_shares_of_what_the_model_makes_and_leave_out_the_time_before() -> None:
    shown = [(time * 1000 / 24, 5.0) for time in range(36)]  # half a second before a full second
    shown = [(500 + time, age) for time, age in shown]
    turn = ViewerTurn.of(found(shown, []), STEP24)
    assert turn.rate == 1.0
    assert turn.rate_with_keys == 0.0
    assert len(turn.ages_ms) == 24


def test_a_model_is_not_blamed_for_what_it_does_not_make() -> None:
    shown = [(1000.0 + time * 50, 5.0) for time in range(40)]
    assert SLOW24.made_hz == 20.0
    assert ViewerTurn.of(found(shown, []), SLOW24).rate == 1.0


def test_a_picture_that_froze_until_the_end_is_a_gap() -> None:
    turn = ViewerTurn.of(found([(1100.0, 5.0), (1400.0, 5.0)], []), STEP12)
    assert turn.longest_gap_ms == 1600.0
    assert ViewerTurn.of(found([(100.0, 5.0)], []), STEP12).longest_gap_ms == 2000.0


def test_a_key_that_was_never_seen_counts_as_a_slow_one() -> None:
    seen = SideSummary.of([ViewerTurn.of(found([], [100.0], unseen=2), STEP12)])
    assert seen.command_p50 == 5000.0
    assert (seen.commands, seen.unseen) == (3, 2)
    assert seen.age_p50 is None
    assert seen.setup_ms is None


def met(
    row: Row, ours: SideSummary, bare: SideSummary | None = None, *others: RowResult
) -> list[bool | None]:
    """Return which goals of a row are met."""
    return [goal.met for goal in goals_of(RowResult(row, ours, bare), others)]


def test_a_row_keeps_its_rate_and_shows_a_key_in_a_round_trip_a_step_and_two_frames() -> None:
    row = Row("rate", "webrtc", STEP24, round_trip_ms=200.0)
    allowed_ms = 200 + 25 + 2 * 1000 / 24
    assert met(row, replace(SEEN, rate=0.97, command_p50=allowed_ms)) == [True, True]
    assert met(row, replace(SEEN, rate=0.969, command_p50=allowed_ms + 0.1)) == [False, False]
    assert met(row, replace(SEEN, command_p50=None)) == [True, False]


def test_a_key_that_acts_now_does_not_wait_for_a_long_lead() -> None:
    row = Row("act", "websocket", LONG24, round_trip_ms=100.0, act="now")
    allowed_ms = 100 + 25 + 2 * 1000 / 24
    assert met(row, replace(SEEN, command_p50=allowed_ms)) == [True]
    assert met(row, replace(SEEN, command_p50=allowed_ms + 1)) == [False]
    assert met(replace(row, act="after"), SEEN) == []
    assert row.title == "long24, act: now, websocket, 100 ms"


def test_pictures_are_shown_at_most_a_fifth_later_than_by_a_bare_loop() -> None:
    row = Row("shown", "webrtc", SLOW24)
    assert met(row, replace(SEEN, age_p50=24.0), SEEN) == [True]
    assert met(row, replace(SEEN, age_p50=24.1), SEEN) == [False]
    assert met(row, SEEN) == [None]


def test_a_congested_line_shows_pictures_300_ms_older_than_a_free_one_at_most() -> None:
    free = Row("congested", "websocket", BUSY24, 50.0)
    congested = replace(free, rate_kbit=500.0)
    other = RowResult(free, SEEN, None)
    assert met(congested, replace(SEEN, age_p50=320.0), None, other) == [True]
    assert met(congested, replace(SEEN, age_p50=321.0), None, other) == [False]
    assert met(congested, SEEN) == [None]
    assert met(free, SEEN) == []


def test_a_starved_line_shows_half_the_rate_and_does_not_freeze() -> None:
    row = Row("starved", "webrtc", STEP24, 50.0, loss=0.3, rate_kbit=300.0)
    good = replace(SEEN, rate=0.5, longest_gap_ms=1000.0, command_p50=575.0)
    assert met(row, good) == [True, True, True]
    bad = replace(SEEN, rate=0.49, longest_gap_ms=1001.0, command_p50=576.0)
    assert met(row, bad) == [False, False, False]


def test_every_row_of_the_issue_is_in_a_full_run_and_a_quick_one_is_short() -> None:
    full, quick = LineOptions.chosen(quick=False), LineOptions.chosen(quick=True)
    rated = [row for row in full.rows if row.about == "rate"]
    lines = {(row.transport, row.toy, row.round_trip_ms, row.loss) for row in rated}
    assert lines == {
        (transport, toy, round_trip_ms, loss)
        for transport in ("websocket", "webrtc")
        for toy in (STEP12, STEP24)
        for round_trip_ms in (0.0, 50.0, 100.0, 200.0, 300.0)
        for loss in (0.0, 0.02)
    }
    assert {row.about for row in full.rows} == {row.about for row in quick.rows}
    assert quick.total_s < 200


@pytest.mark.parametrize("complete", [True, False])
def test_a_report_says_what_was_met_and_is_written_down(tmp_path: Path, complete: bool) -> None:
    row = Row("rate", "webrtc", STEP24, 100.0, jitter_ms=30.0, loss=0.02)
    results = (RowResult(row, replace(SEEN, rate=0.5, age_p50=None), SEEN),)
    report = LineReport(this_machine(), results, complete)
    table = as_line_table(report)
    assert "| 100 ms, jitter 30 ms, loss 2% | step24 | webrtc | 0.50 (1.00) | 90 | none |" in table
    assert "rate 0.97: missed; command 208: met |" in table
    assert ("stopped before its end" in table) is not complete
    write_line_json(report, tmp_path / "line.json")
    told = json.loads((tmp_path / "line.json").read_text())
    assert told["results"][0]["ours"]["age_p50"] is None
    assert [goal["met"] for goal in told["results"][0]["goals"]] == [False, True]
