"""The results of one evaluation, as data, as a table and as JSON."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from reverie.bench.machine import Machine
from reverie.evaluation.bars import BarResult, Measure, Unit
from reverie.evaluation.samples import Estimate

FPS_TITLE = "frames a second of one session"


@dataclass(frozen=True, slots=True)
class ReportRow:
    """One measure, and how it compares with its bar.

    Attributes:
        why: the reason of a known shortfall; else empty.
    """

    measure: Measure
    found: Estimate
    verdict: BarResult
    why: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """The results with one number of denoise steps.

    Attributes:
        fps: frames a second of one session, alone on this machine.
    """

    steps: int
    fps: float
    rows: tuple[ReportRow, ...]


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """One evaluation.

    Attributes:
        weights: version of the weights.
        served_steps: denoise steps of a session by default; only these are judged.
        left_out: parts of the plan that did not fit into the time of a quick run.
        jobs: how many were planned.
        jobs_done: fewer than `jobs` when the run was stopped.
    """

    weights: str
    plan: str
    served_steps: int
    seconds: float
    machine: Machine
    columns: tuple[Column, ...]
    left_out: tuple[str, ...] = ()
    jobs: int = 0
    jobs_done: int = 0

    @property
    def stopped(self) -> bool:
        """Whether it was stopped before its end."""
        return self.jobs_done < self.jobs

    @property
    def missed(self) -> tuple[ReportRow, ...]:
        """The failures: missed bars of the served steps that are not known shortfalls."""
        judged = [column for column in self.columns if column.steps == self.served_steps]
        return tuple(
            row for column in judged for row in column.rows if row.verdict is BarResult.MISSED
        )


def as_table(report: EvaluationReport) -> str:
    """Return the report in Markdown, as in `docs/pocket.md`."""
    machine, columns = report.machine, report.columns
    steps = ", ".join(str(column.steps) for column in columns)
    about = (
        f"pocket {report.weights}, {steps} denoise steps, {report.plan} run of "
        f"{report.seconds / 60:.1f} minutes on {machine.processor}, {machine.cores} cores, load "
        f"{machine.load_at_start:.1f} at the start; reverie {machine.reverie}, "
        f"torch {machine.torch}, Python {machine.python}."
    )
    rows = _alone(columns[0]) if len(columns) == 1 else _side_by_side(columns)
    lines = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([about, *_lacking(report), "", *lines, *_reasons(columns)])


def _lacking(report: EvaluationReport) -> list[str]:
    """Return notes on what is missing in the table."""
    lines = []
    if report.left_out:
        speed = ", ".join(f"{column.fps:.1f}" for column in report.columns)
        lines.append(
            f"Left out, because this machine makes {speed} frames a second: "
            f"{', '.join(report.left_out)}. --minutes gives a quick run more time; a full run "
            "tries everything."
        )
    if report.stopped:
        lines.append(
            f"Stopped after {report.jobs_done} of {report.jobs} parts; the table shows those."
        )
    return ["", *lines] if lines else []


def _alone(column: Column) -> list[tuple[str, ...]]:
    lines: list[tuple[str, ...]] = [
        ("measured", "value", "95 % interval", "trials (worlds)", "bar", ""),
        ("---",) * 6,
    ]
    lines += [
        (
            row.measure.title,
            _figure(row.measure, row.found.value),
            _interval(row),
            f"{row.found.trials:,} ({row.found.worlds})",
            _bar(row.measure),
            "" if row.verdict is BarResult.TOLD else row.verdict.value,
        )
        for row in column.rows
    ]
    return [*lines, (FPS_TITLE, f"{column.fps:.1f}", "", "", "", "")]


def _side_by_side(columns: tuple[Column, ...]) -> list[tuple[str, ...]]:
    heads = [f"{column.steps} step{'s' * (column.steps > 1)}" for column in columns]
    lines: list[tuple[str, ...]] = [("measured", "bar", *heads), ("---",) * (2 + len(columns))]
    known = [{row.measure: row for row in column.rows} for column in columns]
    lines += [
        (measure.title, _bar(measure), *(_cell(rows.get(measure)) for rows in known))
        for measure in dict.fromkeys(measure for rows in known for measure in rows)
    ]
    return [*lines, (FPS_TITLE, "", *(f"{column.fps:.1f}" for column in columns))]


def _cell(row: ReportRow | None) -> str:
    if row is None:  # the run was stopped before
        return ""
    return f"{_figure(row.measure, row.found.value)} ({_interval(row)})"


def _reasons(columns: tuple[Column, ...]) -> list[str]:
    known = {row.measure.title: row.why for column in columns for row in column.rows if row.why}
    return ["", *(f"- {title}: {why}" for title, why in known.items())] if known else []


def _figure(measure: Measure, value: float) -> str:
    return f"{value:.1f} dB" if measure.unit is Unit.DB else f"{100 * value:.1f} %"


def _interval(row: ReportRow) -> str:
    scale = 1 if row.measure.unit is Unit.DB else 100
    return f"{scale * row.found.low:.1f} to {scale * row.found.high:.1f}"


def _bar(measure: Measure) -> str:
    if measure.bar is None:
        return ""
    return f"{measure.bar:.0f} dB" if measure.unit is Unit.DB else f"{100 * measure.bar:.0f} %"


def write_json(report: EvaluationReport, file: Path) -> None:
    """Write all results to a file."""
    file.write_text(json.dumps(asdict(report), indent=2, allow_nan=False) + "\n", encoding="utf-8")
