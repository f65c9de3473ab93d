"""Figures against their bars, and the list of those that are known to be short."""

from pathlib import Path

import pytest
from safetensors import safe_open

from reverie.evaluation.bars import (
    KNOWN_SHORTFALLS,
    MEASURES,
    BarResult,
    KnownShortfalls,
    Measure,
    Shortfall,
    Unit,
    judge,
    known_shortfalls,
)
from reverie.evaluation.samples import Estimate
from reverie.models.pocket.checkpoint import SHIPPED_WEIGHTS

MEASURE = Measure("walk_1000_tiles", "tiles", Unit.SHARE, 0.8)


def found(value: float, half: float) -> Estimate:
    return Estimate(value, value - half, value + half, 100, 10)


def known(figure: float) -> dict[str, Shortfall]:
    return {MEASURE.name: Shortfall(figure=figure, why="the land grows monotonous")}


@pytest.mark.parametrize(
    ("value", "half", "listed", "verdict"),
    [
        (0.80, 0.10, None, BarResult.MET),
        (0.75, 0.06, None, BarResult.WITHIN),
        (0.70, 0.05, None, BarResult.MISSED),
        (0.70, 0.05, 0.72, BarResult.SHORT),
        (0.60, 0.05, 0.72, BarResult.MISSED),  # worse than what is known
        (0.85, 0.05, 0.72, BarResult.MET),  # better than what is known
    ],
)
def test_a_bar_is_missed_by_more_than_the_interval(
    value: float, half: float, listed: float | None, verdict: BarResult
) -> None:
    shortfalls = {} if listed is None else known(listed)
    assert judge(MEASURE, found(value, half), shortfalls) is verdict


def test_a_measure_without_a_bar_is_only_reported() -> None:
    told = Measure("late_prompt_kept", "kept", Unit.SHARE, None)
    assert judge(told, found(0.1, 0.01), {}) is BarResult.TOLD


def test_the_bars_are_those_that_were_set() -> None:
    assert {measure.name: measure.bar for measure in MEASURES if measure.bar is not None} == {
        "codec": 32,
        "actions": 0.95,
        "prompt_colours": 0.90,
        "prompt_kept": 0.80,
        "walk_100_tiles": 0.85,
        "walk_1000_tiles": 0.80,
        "walk_1000_colours": 0.95,
        "walk_walker": 0.95,
        "still_tiles": 0.80,
        "still_colours": 0.95,
        "still_walker": 0.95,
        "memory": 22,
        "narration_facts": 0.90,
        "narration_answers": 0.85,
    }


def test_the_list_that_ships_lists_only_what_is_short() -> None:
    bars = {measure.name: measure.bar for measure in MEASURES}
    for name, shortfall in known_shortfalls().measures.items():
        bar = bars[name]
        assert bar is not None
        assert shortfall.figure < bar


def test_the_list_is_of_the_weights_that_ship() -> None:
    listed = known_shortfalls()
    with safe_open(SHIPPED_WEIGHTS, framework="pt") as file:
        shipped = file.metadata()["version"]
    assert listed.of(shipped) == listed.measures, (
        f"new weights {shipped} ship: run `reverie eval pocket --quick`, and write into "
        f"{KNOWN_SHORTFALLS.name} this version and what it misses by more than its interval"
    )


def test_other_weights_have_no_known_shortfalls() -> None:
    listed = KnownShortfalls(weights="a", measures=known(0.5))
    assert listed.of("a") == listed.measures
    assert listed.of("b") == {}


@pytest.mark.parametrize(
    "text",
    [
        '{"walk_1000_tiles": {"figure": 0.7}}',
        '{"walk_1000_tiles": {"figure": NaN, "why": "nobody knows why"}}',
        '{"walk_100_commonest": {"figure": 0.7, "why": "there is no bar for it"}}',
        '{"dancing": {"figure": 0.7, "why": "nobody measures it"}}',
        '{"dancing": ',
    ],
)
def test_a_list_with_a_mistake_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    path.write_text(f'{{"weights": "a", "measures": {text}}}', encoding="utf-8")
    with pytest.raises(ValueError, match=r"without a bar|why|figure|finite|JSON"):
        known_shortfalls(path)
