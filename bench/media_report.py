"""The results of `reverie bench --media`, as a table and as JSON."""

import json
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from reverie.bench.latency import SETTLE_S, Latency, media_latency
from reverie.bench.machine import Machine, this_machine
from reverie.bench.progress import Progress
from reverie.bench.viewers import RATE_HZ, Viewers, viewers_of_one

GOAL = 1.2
"""Largest acceptable ratio of the server's latency to the bare loop's."""

MOST_MS = 200.0
"""Viewers are added until the 95th percentile of their frames' age exceeds this."""


@dataclass(frozen=True, slots=True)
class MediaOptions:
    """What to measure, and how long.

    Attributes:
        rounds: number of turns of server and bare loop.
        seconds: of each turn.
        viewers: receivers of one session, tried in this order until frames are older than
            `MOST_MS`.
    """

    rounds: int = 5
    seconds: float = 8.0
    viewers: tuple[int, ...] = (1, 4, 8, 16, 24, 32, 48, 64, 96, 128)

    @classmethod
    def chosen(cls, *, quick: bool) -> "MediaOptions":
        """Return the options for a run of about six minutes, or of one and a half."""
        return cls(2, 4.0, (1, 8)) if quick else cls()

    @property
    def total_s(self) -> float:
        """The longest duration, without the start of processes."""
        turn_s = SETTLE_S + self.seconds
        return turn_s * (4 * self.rounds + len(self.viewers))


@dataclass(frozen=True, slots=True)
class MediaReport:
    """The results of one run.

    Attributes:
        complete: whether it ran to its end.
    """

    machine: Machine
    latency: tuple[Latency, ...]
    viewers: tuple[Viewers, ...]
    complete: bool = False


async def run_media_bench(
    options: MediaOptions,
    progress: Progress | None = None,
    on_report: Callable[[MediaReport], None] = lambda _: None,
) -> MediaReport:
    """Measure everything, and return it.

    Args:
        options: what to measure.
        progress: shows the progress; None shows nothing.
        on_report: called with the results so far, for a caller that can be cancelled.

    Raises:
        ModuleNotFoundError: playwright, which drives the browser, is not installed.
    """
    progress = progress or Progress(quiet=True)
    progress.expect(options.total_s)
    progress.say("to the pixels of a browser")
    on_progress = progress.advance
    latency = await media_latency(options.rounds, options.seconds, on_progress=on_progress)
    report = MediaReport(this_machine(), latency, ())
    on_report(report)
    progress.say(f"{options.viewers[0]} viewers")
    async with aclosing(
        viewers_of_one(options.viewers, options.seconds, most_ms=MOST_MS)
    ) as measured:
        async for found in measured:
            report = replace(report, viewers=(*report.viewers, found))
            on_report(report)
            progress.advance(SETTLE_S + options.seconds)
            progress.say(f"more than {found.count} viewers")
    return replace(report, complete=True)


def as_media_table(report: MediaReport) -> str:
    """Return the report in Markdown."""
    machine = report.machine
    head = (
        f"Headless Chromium, 256x256 at 30 frames a second, on {machine.processor}, "
        f"{machine.cores} cores, load {machine.load_at_start:.1f} at the start; reverie "
        f"{machine.reverie}, Python {machine.python}."
    )
    rows = [
        f"| {way.way} | {way.ours_p50:.0f} / {way.ours_p95:.0f} | "
        f"{way.bare_p50:.0f} / {way.bare_p95:.0f} | {way.ratio_p50:.2f} / {way.ratio_p95:.2f} | "
        f"{way.ours_setup:.0f} | {way.bare_setup:.0f} | "
        f"{way.command_p50:.0f} / {way.command_p95:.0f} |"
        for way in report.latency
    ]
    seen = [
        f"| {each.count} | {each.fps:.1f} | {each.p50_ms:.0f} / {each.p95_ms:.0f} |"
        for each in report.viewers
    ]
    return "\n".join(
        [
            head,
            *(() if report.complete else ("", "The run was stopped before its end.")),
            "",
            "| way | drawn to pixels, ours (ms, p50 / p95) | bare loop | ours / bare | "
            "set-up, ours | bare | key to pixels, ours, with its receipt in between |",
            "|---|---|---|---|---|---|---|",
            *rows,
            "",
            f"| aiortc viewers of one session, {RATE_HZ:g} a second | frames a second each | "
            "age (ms, p50 / p95; 67 of it aiortc's own) |",
            "|---|---|---|",
            *seen,
        ]
    )


def write_media_json(report: MediaReport, file: Path) -> None:
    """Write all results to a file."""
    file.write_text(json.dumps(asdict(report), indent=2) + "\n", encoding="utf-8")
