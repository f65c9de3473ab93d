"""One evaluation, from its options to its report."""

import os
import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from math import inf

import numpy as np

from reverie.bench.machine import this_machine
from reverie.bench.progress import Progress
from reverie.evaluation.bars import MEASURES, BarResult, Shortfall, Unit, judge, known_shortfalls
from reverie.evaluation.model_rig import RigParts, ServedModelRig
from reverie.evaluation.plan import FULL, QUICK, Plan, within
from reverie.evaluation.report import Column, EvaluationReport, ReportRow
from reverie.evaluation.samples import Sample, estimate
from reverie.evaluation.worker_pool import Job, play_all
from reverie.evaluation.worlds import Stream, draw_worlds
from reverie.models.pocket.simulator.biomes import Action
from reverie.models.pocket.spec import DEFAULT_STEPS

WARM_UP_FRAMES = 8
SPEED_ROUNDS, ROUND_FRAMES, ROUND_S = 3, 20, 2.0
"""A round ends after so many frames, or after so many seconds."""

QUICK_MINUTES = 2.0


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """What to measure, and how long.

    Attributes:
        quick: fewer trials of everything, as many as fit into `minutes`.
        steps: numbers of denoise steps to compare; empty takes the one that is served.
        checkpoint: weights; None takes the shipped weights.
        workers: processes; 0 takes one for each core, at most four.
        plan: what is tried; None takes the plan that `quick` names.
        minutes: the time limit of a quick run.
    """

    quick: bool = False
    steps: tuple[int, ...] = ()
    checkpoint: str | None = None
    workers: int = 0
    plan: Plan | None = None
    minutes: float = QUICK_MINUTES


def run_evaluation(
    options: EvaluationOptions, progress: Progress | None = None
) -> EvaluationReport:
    """Measure everything; a run that is interrupted (Ctrl-C) reports its results so far.

    Args:
        options: what to measure.
        progress: shows the progress; None shows nothing.

    Raises:
        CheckpointError: the weights are missing or do not fit.
        RolloutError: the loop failed.
    """
    progress = progress or Progress(quiet=True)
    machine, started_s = this_machine(), time.monotonic()
    progress.say("loading the model")
    parts = RigParts.load(options.checkpoint)
    weights = parts.instance.weights_version
    known = known_shortfalls().of(weights)
    all_steps = options.steps or (DEFAULT_STEPS,)
    progress.say("timing the model")
    speeds = {steps: frames_a_second(parts, steps) for steps in all_steps}
    workers = options.workers or min(4, os.cpu_count() or 1)
    whole = options.plan or (QUICK if options.quick else FULL)
    plan = whole
    if options.quick:
        plan = within(whole, tuple(speeds.values()), workers, 60 * options.minutes)
    jobs = [
        Job(part.trial, worlds, steps, cost)
        for part in plan
        for steps in all_steps
        for worlds, cost in zip(part.groups(), part.costs(), strict=True)
    ]
    if options.quick:
        jobs = _short_first(jobs, workers)
    found = _play(parts, options.checkpoint, jobs, workers, progress)
    return EvaluationReport(
        weights=weights,
        plan="quick" if options.quick else "full",
        served_steps=DEFAULT_STEPS,
        seconds=time.monotonic() - started_s,
        machine=machine,
        columns=tuple(
            Column(steps, speeds[steps], rows_of(found.samples.get(steps, ()), known))
            for steps in all_steps
        ),
        left_out=tuple(part.name for part in whole if part not in plan),
        jobs=len(jobs),
        jobs_done=found.jobs,
    )


def _short_first(jobs: Sequence[Job], workers: int) -> list[Job]:
    """Put short jobs before long ones, so that a run that is stopped early has results.

    The longest still begin at once, on all workers except one, so the run takes no longer.
    """
    by_cost = sorted(jobs, key=lambda job: job.cost)
    at_once = by_cost[max(0, len(by_cost) - workers + 1) :]
    return [*reversed(at_once), *by_cost[: len(by_cost) - len(at_once)]]


@dataclass(slots=True)
class _Found:
    """The results of the finished jobs.

    Attributes:
        samples: by the number of denoise steps.
    """

    samples: dict[int, list[Sample]]
    jobs: int = 0


def _play(
    parts: RigParts, checkpoint: str | None, jobs: Sequence[Job], workers: int, progress: Progress
) -> _Found:
    """Run all jobs, until the end or Ctrl-C."""
    found = _Found({job.steps: [] for job in jobs})
    progress.expect(sum(job.cost for job in jobs))
    progress.say(f"{len(jobs)} parts")
    with (
        suppress(KeyboardInterrupt),
        closing(play_all(parts, checkpoint, jobs, workers, progress.advance)) as playing,
    ):
        for done in playing:
            found.samples[done.job.steps] += done.samples
            found.jobs += 1
            progress.say(f"{found.jobs} of {len(jobs)} parts done")
    return found


def rows_of(samples: Sequence[Sample], known: Mapping[str, Shortfall]) -> tuple[ReportRow, ...]:
    """Return a row for every measure that was tried, in the order of the table."""
    rows = []
    for measure in MEASURES:
        own = [sample for sample in samples if sample.measure == measure.name]
        if own:
            most = inf if measure.unit is Unit.DB else 1.0
            found = estimate(own, share=measure.unit is Unit.SHARE, most=most)
            verdict = judge(measure, found, known)
            why = known[measure.name].why if verdict is BarResult.SHORT else ""
            rows.append(ReportRow(measure, found, verdict, why))
    return tuple(rows)


def frames_a_second(parts: RigParts, steps: int) -> float:
    """Return the frame rate of one walking session, the median of a few rounds."""
    worlds = draw_worlds(Stream.SPEED, 1)
    right = np.full(1, Action.RIGHT)
    rates = []
    with closing(ServedModelRig(parts, steps).open_sessions(worlds)) as sessions:
        sessions.begin()
        for _ in range(WARM_UP_FRAMES):
            sessions.act(right)
        for _ in range(SPEED_ROUNDS):
            started_s, frames, spent_s = time.perf_counter(), 0, 0.0
            while frames < ROUND_FRAMES and spent_s < ROUND_S:
                sessions.act(right)
                frames, spent_s = frames + 1, time.perf_counter() - started_s
            rates.append(frames / spent_s)
    return statistics.median(rates)
