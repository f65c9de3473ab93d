"""A whole evaluation on untrained weights, the forms of its report, and the command."""

import json
import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from counted_progress import ProgressLog
from PIL import Image
from simulated_rig import simulated
from tiny_pocket import tiny_weights

from reverie.cli import main
from reverie.evaluation import strip
from reverie.evaluation.bars import MEASURES, BarResult, Shortfall
from reverie.evaluation.model_rig import ModelRig, RigParts
from reverie.evaluation.plan import FULL, QUICK, Part, Plan, predicted_s, within
from reverie.evaluation.report import EvaluationReport, as_table, write_json
from reverie.evaluation.run import EvaluationOptions, _short_first, rows_of, run_evaluation
from reverie.evaluation.samples import Sample
from reverie.evaluation.trials import try_actions, try_long_walks, try_memory, try_prompts
from reverie.evaluation.worker_pool import Job, play_all
from reverie.evaluation.worlds import EvaluatedWorld, Stream, draw_worlds

SMALL: Plan = (
    Part("actions", try_actions, Stream.ACTIONS, worlds=3, group=2, steps=15),
    Part("prompts", try_prompts, Stream.PROMPTS, worlds=2, group=2, steps=5),
)
CHECKPOINT = str(tiny_weights())


@pytest.fixture(scope="module", autouse=True)
def _soon_timed() -> Iterator[None]:
    """Time a few frames: the speed of untrained weights does not matter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reverie.evaluation.run.WARM_UP_FRAMES", 1)
        patch.setattr("reverie.evaluation.run.ROUND_FRAMES", 2)
        yield


@pytest.fixture(scope="module")
def report() -> EvaluationReport:
    options = EvaluationOptions(steps=(1, 2), checkpoint=CHECKPOINT, workers=1, plan=SMALL)
    return run_evaluation(options)


def test_every_measure_is_tried_by_the_quick_and_the_full_plan() -> None:
    for plan in (QUICK, FULL):
        assert [part.worlds for part in plan] == [
            sum(len(group) for group in part.groups()) for part in plan
        ]
        assert all(len(group) <= part.group for part in plan for group in part.groups())
    assert [(p.trial, p.stream) for p in QUICK] == [(p.trial, p.stream) for p in FULL]


def test_an_evaluation_measures_every_number_of_steps(report: EvaluationReport) -> None:
    assert [column.steps for column in report.columns] == [1, 2]
    for column in report.columns:
        assert column.fps > 0
        assert [(row.measure.name, row.found.trials, row.found.worlds) for row in column.rows] == [
            ("codec", 3, 3), ("actions", 30, 3), ("prompt_colours", 2, 2), ("prompt_kept", 90, 2)
        ]  # fmt: skip


@pytest.mark.parametrize("plan", [QUICK, FULL])
def test_a_quick_run_leaves_out_what_takes_longest_until_it_fits_into_its_time(plan: Plan) -> None:
    assert within(plan, (1000.0,), 2, 120.0) == plan
    before = plan
    for fps in (30.0, 12.0, 6.0, 2.0, 0.5, 0.01):
        kept = within(plan, (fps,), 2, 120.0)
        assert kept == tuple(part for part in before if part in kept)
        assert len(kept) == 1 or predicted_s(kept, (fps,), 2) <= 120.0
        before = kept
    assert len(kept) == 1
    longest = max(plan, key=lambda part: max(part.costs()))
    assert longest not in within(plan, (6.0,), 2, 120.0)
    assert len(within(plan, (6.0,), 2, 120.0)) > len(within(plan, (6.0, 6.0), 2, 120.0))


def test_all_of_the_quick_plan_fits_into_its_time_at_the_speed_of_a_quiet_machine() -> None:
    assert within(QUICK, (30.0,), 2, 60 * EvaluationOptions().minutes) == QUICK


def test_the_report_names_left_out_parts_and_the_speed(report: EvaluationReport) -> None:
    lacking = as_table(replace(report, left_out=("walking 1,000 frames",)))
    speeds = ", ".join(f"{column.fps:.1f}" for column in report.columns)
    assert f"makes {speeds} frames a second: walking 1,000 frames." in lacking
    assert "Left out" not in as_table(report)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("workers", [1, 2])
def test_progress_is_told_from_the_beginning_and_reaches_its_end(workers: int) -> None:
    told = ProgressLog()
    run_evaluation(EvaluationOptions(checkpoint=CHECKPOINT, workers=workers, plan=SMALL), told)
    assert told.said[:2] == ["loading the model", "timing the model"]
    assert told.said[-1] == "3 of 3 parts done"
    assert told.total > 0
    assert told.sum == pytest.approx(told.total)


def stopping(model_rig: ModelRig, worlds: Sequence[EvaluatedWorld]) -> Iterator[Sample]:
    """Be stopped in the middle, as `kill` does it."""
    yield from ()
    signal.raise_signal(signal.SIGTERM)
    raise AssertionError("it went on")


STOPPED: Plan = (*SMALL, Part("stopped", stopping, Stream.ACTIONS, 1, group=1, steps=99))


def test_a_stopped_evaluation_reports_its_results_so_far(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reverie.evaluation.run.QUICK", STOPPED)
    file = tmp_path / "eval.json"
    arguments = ["--quick", "--workers", "1", "--checkpoint", CHECKPOINT, "--json", str(file)]
    assert main(["eval", "pocket", *arguments]) == 130
    said = capsys.readouterr()
    assert "Stopped after 3 of 4 parts" in said.out
    assert "| action followed, of five |" in said.out
    assert "stopped" in said.err
    written = json.loads(file.read_text(encoding="utf-8"))
    assert (written["jobs_done"], written["jobs"]) == (3, 4)
    assert len(written["columns"][0]["rows"]) == 4


def test_the_table_of_a_run_that_was_stopped_has_gaps(report: EvaluationReport) -> None:
    first, second = report.columns
    short = replace(report, columns=(first, replace(second, rows=second.rows[:1])), jobs=7)
    table = as_table(short)
    assert table.count("\n| ") == 2 + 4 + 1
    assert "Stopped after" in table


@pytest.mark.parametrize("workers", [1, 2, 4, 20])
def test_a_quick_run_begins_with_what_is_soon_done_and_the_longest_at_once(workers: int) -> None:
    worlds = tuple(draw_worlds(Stream.ACTIONS, 1))
    jobs = [Job(try_actions, worlds, 1, cost) for cost in (5.0, 1.0, 9.0, 3.0, 7.0)]
    costs = [job.cost for job in _short_first(jobs, workers)]
    longest = min(workers - 1, len(jobs))
    assert costs[:longest] == [9.0, 7.0, 5.0, 3.0, 1.0][:longest]
    assert costs[longest:] == [1.0, 3.0, 5.0, 7.0, 9.0][: len(jobs) - longest]


@pytest.mark.timeout(120)
def test_workers_end_when_the_run_is_stopped() -> None:
    parts = RigParts.load(CHECKPOINT, threads=1)
    jobs = [Job(try_long_walks, (world,), 3, 1.0) for world in draw_worlds(Stream.WALKS, 2)]

    def stop(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(play_all(parts, CHECKPOINT, jobs, 2, stop))
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("minutes", ["0", "-1", "soon", "nan", "inf"])
def test_an_invalid_time_is_refused(minutes: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["eval", "pocket", "--quick", "--minutes", minutes])
    assert ended.value.code == 2
    assert "is not a number of minutes" in capsys.readouterr().err


def test_the_table_compares_steps_side_by_side(report: EvaluationReport) -> None:
    table = as_table(report)
    assert "| measured | bar | 1 step | 2 steps |" in table
    assert table.count("\n| ") == 2 + 4 + 1
    assert report.weights in table
    assert report.machine.processor in table


def test_the_table_of_the_served_steps_has_intervals_trials_and_verdicts(
    report: EvaluationReport,
) -> None:
    column = replace(report.columns[0], rows=tuple(rows_of(samples(0.5), {})))
    table = as_table(replace(report, columns=(column,)))
    line = next(line for line in table.splitlines() if line.startswith("| action"))
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[1:] == ["50.0 %", "33.2 to 66.8", "30 (30)", "95 %", "missed"]
    assert "| commonest kind" not in table


def test_a_known_shortfall_is_shown_with_its_reason_and_fails_nothing(
    report: EvaluationReport,
) -> None:
    known = {"actions": Shortfall(figure=0.55, why="left and right look alike to it")}
    rows = rows_of(samples(0.5), known)
    served = replace(report.columns[0], steps=report.served_steps, rows=rows)
    short = replace(report, columns=(served,))
    assert short.missed == ()
    assert "short, and known" in as_table(short)
    assert "- action followed, of five: left and right look alike to it" in as_table(short)
    worse = replace(served, rows=rows_of(samples(0.2), known))
    assert [row.verdict for row in replace(report, columns=(worse,)).missed] == [BarResult.MISSED]


def test_steps_that_are_not_served_are_told_and_not_judged(report: EvaluationReport) -> None:
    rows = rows_of(samples(0.2), {})
    assert rows[0].verdict is BarResult.MISSED
    other = replace(report.columns[0], steps=report.served_steps + 1, rows=rows)
    assert replace(report, columns=(other,)).missed == ()


def samples(share: float) -> Sequence[Sample]:
    return [Sample("actions", world, float(world < 30 * share), 1) for world in range(30)]


def test_everything_is_in_the_json(report: EvaluationReport, tmp_path: Path) -> None:
    write_json(report, tmp_path / "eval.json")
    written = json.loads((tmp_path / "eval.json").read_text(encoding="utf-8"))
    row = written["columns"][1]["rows"][1]
    assert row["measure"] == {
        "name": "actions", "title": "action followed, of five", "unit": "share", "bar": 0.95
    }  # fmt: skip
    assert set(row["found"]) == {"value", "low", "high", "trials", "worlds"}
    assert written["weights"] == report.weights
    assert written["machine"]["cores"] > 0


def test_rows_come_in_the_order_of_the_table() -> None:
    mixed = [Sample(measure.name, 1, 0.5, 1) for measure in reversed(MEASURES)]
    assert [row.measure for row in rows_of(mixed, {})] == list(MEASURES)


@pytest.mark.timeout(300)
def test_several_workers_find_what_one_finds() -> None:
    parts = RigParts.load(CHECKPOINT, threads=1)
    worlds = draw_worlds(Stream.MEMORY, 2)
    jobs = [Job(try_memory, (world,), 1) for world in worlds]
    found = [
        {done.job.worlds: done.samples for done in play_all(parts, CHECKPOINT, jobs, workers)}
        for workers in (1, 2)
    ]
    assert found[0] == found[1]
    assert len(found[0]) == 2


def test_the_command_tells_what_is_missed_and_writes_the_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reverie.evaluation.run.QUICK", SMALL)
    file = tmp_path / "eval.json"
    arguments = ["--quick", "--workers", "1", "--checkpoint", CHECKPOINT, "--json", str(file)]
    assert main(["eval", "pocket", *arguments]) == 1  # the weights are untrained
    said = capsys.readouterr()
    assert "| codec: a picture there and back |" in said.out
    assert "codec: a picture there and back: the bar is missed" in said.err
    assert "loading the model" in said.err
    assert "3 of 3 parts done" in said.err
    assert "left" in said.err
    assert json.loads(file.read_text(encoding="utf-8"))["plan"] == "quick"


def test_missing_weights_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "pocket", "--quick", "--checkpoint", "nowhere.safetensors"]) == 1
    assert "nowhere.safetensors" in capsys.readouterr().err


@pytest.mark.parametrize("steps", ["0", "5", "1,1", "two", "", "1,,2"])
def test_an_invalid_list_of_steps_is_refused(
    steps: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["eval", "pocket", "--steps", steps])
    assert ended.value.code == 2
    assert "is not a list of different numbers of steps" in capsys.readouterr().err


def test_a_strip_has_a_row_for_each_walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strip, "SHOWN", (0, 1, 5))
    monkeypatch.setattr(strip, "CHANGES_AT", 3)
    path = tmp_path / "strip.png"
    assert main(["eval", "pocket", "--checkpoint", CHECKPOINT, "--strip", str(path)]) == 0
    with Image.open(path) as image:
        assert image.size == (3 * 128 + 2 * 4, len(strip.ROWS) * 128 + (len(strip.ROWS) - 1) * 4)


def test_a_strip_recolours_its_walks_where_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strip, "SHOWN", (0, 2, 3))
    monkeypatch.setattr(strip, "CHANGES_AT", 3)
    _, before, after = strip.frames(simulated())
    assert before.shape == (len(strip.ROWS), 128, 128, 3)
    dimmed = before.mean(axis=(1, 2, 3)) - after.mean(axis=(1, 2, 3))
    assert (np.abs(dimmed) > 10).all()
