"""What a run of `reverie bench --media` measured, as a table and as JSON."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from reverie.bench.latency import Latency, media_latency
from reverie.bench.machine import Machine, this_machine
from reverie.bench.viewers import RATE_HZ, Viewers, viewers_of_one

GOAL = 1.2
"""Ours over bare, at most."""


@dataclass(frozen=True, slots=True)
class MediaOptions:
    """What to measure, and how long.

    Attributes:
        rounds: how often ours and bare take turns.
        seconds: of each turn.
        viewers: receivers of one session, tried in this order.
    """

    rounds: int = 5
    seconds: float = 8.0
    viewers: tuple[int, ...] = (1, 4, 8, 16)

    @classmethod
    def chosen(cls, *, quick: bool) -> "MediaOptions":
        """Return the options for a run of five minutes, or of one and a half."""
        return cls(2, 4.0, (1, 8)) if quick else cls()


@dataclass(frozen=True, slots=True)
class MediaReport:
    """Everything that one run measured."""

    machine: Machine
    latency: tuple[Latency, ...]
    viewers: tuple[Viewers, ...]


async def run_media_bench(options: MediaOptions) -> MediaReport:
    """Measure everything.

    Raises:
        ModuleNotFoundError: playwright, which drives the browser, is not installed.
    """
    machine = this_machine()
    latency = await media_latency(options.rounds, options.seconds)
    viewers = await viewers_of_one(options.viewers, options.seconds)
    return MediaReport(machine, latency, viewers)


def as_media_table(report: MediaReport) -> str:
    """Lay the report out in Markdown, as the README shows it."""
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
    """Write everything that was measured."""
    file.write_text(json.dumps(asdict(report), indent=2) + "\n", encoding="utf-8")
