"""The results of `reverie bench --line`, as a table and as JSON."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from reverie.bench.machine import Machine
from reverie.bench.over_line.goals import RowResult, goals_of
from reverie.bench.over_line.turns import SideSummary

_HEAD = (
    "| line | model | way | rate (with keys) | longest gap | drawn to shown | key to picture "
    "| bare: rate (with keys) | longest gap | drawn to shown | key to picture | goals |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True, slots=True)
class LineReport:
    """The results of one run.

    Attributes:
        complete: whether it ran to its end.
    """

    machine: Machine
    results: tuple[RowResult, ...]
    complete: bool = False


def as_line_table(report: LineReport) -> str:
    """Return the report in Markdown."""
    machine = report.machine
    head = (
        f"Headless Chromium through a line between two network namespaces, 256x256, on "
        f"{machine.processor}, {machine.cores} cores, load {machine.load_at_start:.1f} at the "
        f"start; reverie {machine.reverie}, Python {machine.python}. Rates are shares of what the "
        "model makes; times are in ms, p50 / p95."
    )
    remarks = []
    if not report.complete:
        remarks = ["", "The run was stopped before its end; these are the results so far."]
    rows = [_row(result, report.results) for result in report.results]
    return "\n".join([head, *remarks, "", _HEAD, *rows])


def write_line_json(report: LineReport, file: Path) -> None:
    """Write all results to a file, each with its goals."""
    told = asdict(report)
    for each, result in zip(told["results"], report.results, strict=True):
        each["goals"] = [asdict(goal) for goal in goals_of(result, report.results)]
    file.write_text(json.dumps(told, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def _row(result: RowResult, others: tuple[RowResult, ...]) -> str:
    row = result.row
    goals = "; ".join(
        f"{goal.text}: {'?' if goal.met is None else 'met' if goal.met else 'missed'}"
        for goal in goals_of(result, others)
    )
    cells = [row.line, row.model, row.transport, *_cells(result.ours), *_cells(result.bare)]
    return f"| {' | '.join(cells)} | {goals} |"


def _cells(seen: SideSummary | None) -> list[str]:
    if seen is None:
        return [""] * 4
    return [
        f"{seen.rate:.2f} ({seen.rate_with_keys:.2f})",
        f"{seen.longest_gap_ms:.0f}",
        _times(seen.age_p50, seen.age_p95),
        _times(seen.command_p50, seen.command_p95),
    ]


def _times(p50: float | None, p95: float | None) -> str:
    return "none" if p50 is None or p95 is None else f"{p50:.0f} / {p95:.0f}"
