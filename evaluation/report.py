"""What one evaluation found, as data, as a table and as JSON."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from reverie.bench.machine import Machine
from reverie.evaluation.bars import Measure, Unit, Verdict
from reverie.evaluation.samples import Estimate

FPS_TITLE = "frames a second of one session"


@dataclass(frozen=True, slots=True)
class Row:
    """One measure, and how it stands to its bar.

    Attributes:
        why: of a shortfall that is known; else empty.
    """

    measure: Measure
    found: Estimate
    verdict: Verdict
    why: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """Everything that was measured with one number of denoise steps.

    Attributes:
        fps: frames a second of one session, alone on this machine.
    """

    steps: int
    fps: float
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """One evaluation.

    Attributes:
        weights: version of the weights.
        served_steps: denoise steps of a session that asks for nothing else; these are judged.
    """

    weights: str
    plan: str
    served_steps: int
    seconds: float
    machine: Machine
    columns: tuple[Column, ...]

    @property
    def missed(self) -> tuple[Row, ...]:
        """What fails: bars of the served steps that are missed, and not known to be."""
        judged = [column for column in self.columns if column.steps == self.served_steps]
        return tuple(
            row for column in judged for row in column.rows if row.verdict is Verdict.MISSED
        )


def as_table(report: Report) -> str:
    """Lay the report out in Markdown, as the README shows it."""
    machine, columns = report.machine, report.columns
    steps = ", ".join(str(column.steps) for column in columns)
    about = (
        f"pocket {report.weights}, {steps} denoise steps, {report.plan} run of "
        f"{report.seconds / 60:.1f} minutes on {machine.processor}, {machine.cores} cores, load "
        f"{machine.load_at_start:.1f} at the start; reverie {machine.reverie}, "
        f"torch {machine.torch}, Python {machine.python}."
    )
    rows = _alone(columns[0]) if len(columns) == 1 else _side_by_side(columns)
    return "\n".join([about, "", *(f"| {' | '.join(row)} |" for row in rows), *_reasons(columns)])


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
            "" if row.verdict is Verdict.TOLD else row.verdict.value,
        )
        for row in column.rows
    ]
    return [*lines, (FPS_TITLE, f"{column.fps:.1f}", "", "", "", "")]


def _side_by_side(columns: tuple[Column, ...]) -> list[tuple[str, ...]]:
    heads = [f"{column.steps} step{'s' * (column.steps > 1)}" for column in columns]
    lines: list[tuple[str, ...]] = [("measured", "bar", *heads), ("---",) * (2 + len(columns))]
    for rows in zip(*(column.rows for column in columns), strict=True):
        figures = [f"{_figure(row.measure, row.found.value)} ({_interval(row)})" for row in rows]
        lines.append((rows[0].measure.title, _bar(rows[0].measure), *figures))
    return [*lines, (FPS_TITLE, "", *(f"{column.fps:.1f}" for column in columns))]


def _reasons(columns: tuple[Column, ...]) -> list[str]:
    known = {row.measure.title: row.why for column in columns for row in column.rows if row.why}
    return ["", *(f"- {title}: {why}" for title, why in known.items())] if known else []


def _figure(measure: Measure, value: float) -> str:
    return f"{value:.1f} dB" if measure.unit is Unit.DB else f"{100 * value:.1f} %"


def _interval(row: Row) -> str:
    scale = 1 if row.measure.unit is Unit.DB else 100
    return f"{scale * row.found.low:.1f} to {scale * row.found.high:.1f}"


def _bar(measure: Measure) -> str:
    if measure.bar is None:
        return ""
    return f"{measure.bar:.0f} dB" if measure.unit is Unit.DB else f"{100 * measure.bar:.0f} %"


def write_json(report: Report, file: Path) -> None:
    """Write everything that was measured."""
    file.write_text(json.dumps(asdict(report), indent=2, allow_nan=False) + "\n", encoding="utf-8")
