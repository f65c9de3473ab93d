"""The results of one run, as data, as a table and as JSON."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from reverie.bench.machine import Machine


@dataclass(frozen=True, slots=True)
class Throughput:
    """Frames a second of one session: bare loop, runtime, and their ratio."""

    bare_fps: float
    runtime_fps: float
    ratio: float


@dataclass(frozen=True, slots=True)
class Reaction:
    """From a command to the first frame that shows it, as a client in this process sees it.

    Attributes:
        steps_to_act: units from the one that made the newest frame seen to the one that acts.
        steps_to_frame: likewise, to the unit that emits the first affected frame.
        frames_between: frames after the command that do not show it yet.
    """

    steps_to_act: float
    steps_to_frame: float
    frames_between: float
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident memory of this process and its workers over a long session."""

    frames: int
    settled_mib: float
    end_mib: float
    growth_mib: float


@dataclass(frozen=True, slots=True)
class RecordingCost:
    """Frame rate while a session is recorded, over that of the same session when it is not.

    Attributes:
        shared: viewed in H.264, so that the recording encodes nothing.
        alone: viewed as pixels, so that the recording encodes.
        shared_ms: additional processor time of the server for a frame, viewed in H.264; unlike the
            ratio it is meaningful on a loaded machine too.
        alone_ms: likewise, viewed as pixels.
        kbit_per_s: bit rate of the file, by media time.
    """

    shared: float
    alone: float
    shared_ms: float
    alone_ms: float
    kbit_per_s: float


@dataclass(frozen=True, slots=True)
class NarrationCost:
    """What narration costs the frame rate.

    Attributes:
        ratio: frame rate of a program with narration, over that of the same without.
        deltas_per_s: pieces of text a second.
    """

    ratio: float
    deltas_per_s: float


@dataclass(frozen=True, slots=True)
class BenchReport:
    """The results of one run; None is not measured yet, or does not apply to the model.

    Attributes:
        busy_ratio: frame rate under 60 commands a second, over that without commands.
        share: the size of a quick run, as a share of the largest.
        timed_fps: the frame rate that chose the size; 0 in a full run.
        complete: whether it ran to its end.
    """

    model: str
    machine: Machine
    throughput: Throughput | None = None
    reaction: Reaction | None = None
    busy_ratio: float | None = None
    recording: RecordingCost | None = None
    narration: NarrationCost | None = None
    first_frame_ms: float | None = None
    memory: Memory | None = None
    share: float = 1.0
    timed_fps: float = 0.0
    complete: bool = False


def as_table(report: BenchReport) -> str:
    """Return the report in Markdown."""
    machine = report.machine
    rows = [*_of_speed(report), *_of_commands(report), *_of_more(report)]
    return "\n".join(
        [
            f"{report.model} on {machine.processor}, {machine.cores} cores, "
            f"{machine.torch_threads} torch threads, load {machine.load_at_start:.1f} at the "
            f"start; reverie {machine.reverie}, torch {machine.torch}, Python {machine.python}.",
            *_remarks(report),
            "",
            "| measured | value |",
            "|---|---|",
            *(f"| {what} | {value} |" for what, value in rows),
        ]
    )


def _remarks(report: BenchReport) -> list[str]:
    """Return notes on the numbers."""
    remarks = []
    if report.share < 1:
        remarks.append(
            f"Quick run at {report.share:g} of its size, because the model made "
            f"{report.timed_fps:.1f} frames a second: the numbers are rougher."
        )
    if not report.complete:
        remarks.append("The run was stopped before its end; these are the results so far.")
    return ["", *remarks] if remarks else []


def _of_speed(report: BenchReport) -> list[tuple[str, str]]:
    rows, speed = [], report.throughput
    if speed is not None:
        rows += [
            ("frames a second, bare loop", f"{speed.bare_fps:.1f}"),
            ("frames a second, runtime, one session", f"{speed.runtime_fps:.1f}"),
            ("runtime over bare loop", f"{speed.ratio:.3f}"),
        ]
    if report.first_frame_ms is not None:
        rows.append(("session to first frame", f"{report.first_frame_ms:.0f} ms"))
    return rows


def _of_commands(report: BenchReport) -> list[tuple[str, str]]:
    rows = []
    if report.reaction is not None:
        rows += [
            ("command to the step that acts", f"{report.reaction.steps_to_act:g} steps"),
            ("command to first affected frame", f"{report.reaction.steps_to_frame:g} steps"),
            ("the same in time", f"{report.reaction.milliseconds:.0f} ms"),
            ("frames in between", f"{report.reaction.frames_between:g}"),
        ]
    if report.busy_ratio is not None:
        rows.append(("frame rate under 60 commands a second", f"{report.busy_ratio:.3f}"))
    return rows


def _of_more(report: BenchReport) -> list[tuple[str, str]]:
    rows, cost, words, memory = [], report.recording, report.narration, report.memory
    if cost is not None:
        rows += [
            ("frame rate while recorded, watched in H.264", f"{cost.shared:.3f}"),
            ("frame rate while recorded, watched as pixels", f"{cost.alone:.3f}"),
            ("processor time of a recorded frame, H.264", f"{cost.shared_ms:+.2f} ms"),
            ("processor time of a recorded frame, pixels", f"{cost.alone_ms:+.2f} ms"),
            ("size of the recording", f"{cost.kbit_per_s:.0f} kbit/s"),
        ]
    if words is not None:
        rows += [
            (f"frame rate with words ({words.deltas_per_s:.1f} a second)", f"{words.ratio:.3f}"),
        ]
    if memory is not None:
        grown = f"{memory.end_mib:.0f} MiB ({memory.growth_mib:+.1f} since settled)"
        rows.append((f"memory after {memory.frames:,} frames", grown))
    return rows


def write_json(report: BenchReport, file: Path) -> None:
    """Write all results to a file."""
    file.write_text(json.dumps(asdict(report), indent=2, allow_nan=False) + "\n", encoding="utf-8")
