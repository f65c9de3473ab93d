"""`reverie bench --line`, run for a moment: a real server, real bare loops and a real browser."""

import pytest
from net_namespace import made_or_skip

from reverie.bench.line import EmulatedLine
from reverie.bench.over_line.measure import run_line_bench
from reverie.bench.over_line.report import LineReport
from reverie.bench.over_line.rows import LineOptions, Row
from reverie.bench.over_line.toy_models import STEP24, TOYS, Toy
from reverie.bench.time_code import is_marked, now_units, read
from reverie.models.contract.registry import find_family

DELAY_MS = 150.0


@pytest.mark.parametrize("toy", TOYS.values(), ids=TOYS)
def test_a_toy_says_when_its_step_has_ended_and_which_key_acts(toy: Toy) -> None:
    begun = now_units()
    picture = toy.step(3, marked=True)
    made = read(picture)
    assert made is not None
    assert made - begun >= 10 * toy.step_ms - 1
    assert is_marked(picture)
    assert not is_marked(toy.step(4, marked=False))


@pytest.mark.parametrize("toy", TOYS.values(), ids=TOYS)
def test_a_toy_is_a_model_that_declares_its_rate(toy: Toy) -> None:
    spec = find_family(f"reverie.bench.over_line.toy_models:{toy.name}").spec
    assert spec.name == toy.name
    assert [stream.rate_hz for stream in spec.loops[0].streams] == [toy.rate_hz]


@pytest.mark.browser
@pytest.mark.timeout(170)
async def test_both_sides_of_both_ways_are_measured_through_the_line() -> None:
    with made_or_skip(EmulatedLine.laid()):
        pass
    rows = (
        Row("rate", "websocket", STEP24, round_trip_ms=2 * DELAY_MS),
        Row("rate", "webrtc", STEP24, round_trip_ms=2 * DELAY_MS),
    )
    reports: list[LineReport] = []
    options = LineOptions(rounds=1, settle_s=1.0, seconds=3.0, rows=rows)
    report = await run_line_bench(options, on_report=reports.append)
    assert report.complete
    assert [len(each.results) for each in reports] == [1, 2]
    for result in report.results:
        assert result.bare is not None
        for seen in (result.ours, result.bare):
            assert seen.pictures > 0
            assert seen.setup_ms is not None
            assert seen.setup_ms >= 2 * DELAY_MS
            assert 0 < seen.rate < 1.5
            assert seen.age_p50 is not None
            # Nothing is seen before it has come through the line. The page's clock is known by
            # messages to the browser, which a busy machine delays by tens of milliseconds.
            assert seen.age_p50 >= DELAY_MS / 2
            assert seen.command_p50 is not None
            assert seen.command_p50 >= 2 * DELAY_MS + STEP24.step_ms
