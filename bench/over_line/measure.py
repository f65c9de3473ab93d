"""Measure every row: server and bare loop take turns on one line, in one run."""

from collections.abc import Callable
from dataclasses import replace

from reverie.bench.line import EmulatedLine
from reverie.bench.machine import this_machine
from reverie.bench.over_line.far_end import FarEnd, Side, far_end
from reverie.bench.over_line.goals import RowResult
from reverie.bench.over_line.near_end import near_end
from reverie.bench.over_line.report import LineReport
from reverie.bench.over_line.rows import LineOptions, Row
from reverie.bench.over_line.turns import SideSummary, ViewerTurn
from reverie.bench.progress import Progress


async def run_line_bench(
    options: LineOptions,
    progress: Progress | None = None,
    on_report: Callable[[LineReport], None] = lambda _: None,
) -> LineReport:
    """Measure everything, and return it.

    Args:
        options: what to measure.
        progress: shows the progress; None shows nothing.
        on_report: called with the results so far, for a caller that can be cancelled.

    Raises:
        LineError: no line can be laid here: it needs root, `ip` and veth.
        NearEndError: the server or the bare loops did not start.
        FarEndError: the browser could not watch one of them.
        ModuleNotFoundError: playwright, which drives the browser, is not installed.
    """
    progress = progress or Progress(quiet=True)
    progress.expect(options.total_s)
    progress.say("starting")
    report = LineReport(this_machine(), ())
    toys = dict.fromkeys(row.toy.name for row in options.rows)
    with EmulatedLine.laid() as line:
        async with near_end(line, toys) as near, far_end(line, near) as far:
            for row in options.rows:
                progress.say(row.title)
                line.downlink.become(row.downlink)
                line.uplink.become(row.uplink)
                result = await _measured(far, row, options, progress.advance)
                report = replace(report, results=(*report.results, result))
                on_report(report)
    return replace(report, complete=True)


async def _measured(
    far: FarEnd, row: Row, options: LineOptions, on_progress: Callable[[float], None]
) -> RowResult:
    turns: dict[Side, list[ViewerTurn]] = {"ours": [], "bare": []}
    sides: tuple[Side, ...] = ("ours", "bare") if row.with_bare else ("ours",)
    for _ in range(options.rounds):
        for side in sides:
            turn = await far.turn(side, row, options.settle_s, options.seconds)
            turns[side].append(turn)
            on_progress(options.settle_s + 2 * options.seconds)
    bare = SideSummary.of(turns["bare"]) if row.with_bare else None
    return RowResult(row, SideSummary.of(turns["ours"]), bare)
