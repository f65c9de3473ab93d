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
"""A round ends after so many frames, or when it has lasted so long."""

QUICK_MINUTES = 2.0


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """What to measure, and how long.

    Attributes:
        quick: fewer trials of everything, and only what fits into `minutes`.
        steps: denoise steps to compare; none takes those that are served.
        checkpoint: weights; None takes those that ship.
        workers: processes that play; 0 takes one a core, four at most.
        plan: what is tried instead of what `quick` says.
        minutes: how long a quick run may take.
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
    """Measure everything; one that is interrupted (Ctrl-C) reports what it has found by then.

    Args:
        options: what to measure.
        progress: is told how far it has come; None: nobody is.

    Raises:
        CheckpointError: the weights are missing or do not fit.
        RolloutError: the loop failed.
    """
    progress = progress or Progress(quiet=True)
    machine, started_s = this_machine(), time.monotonic()
    progress.say("loading the model")
    house = RigParts.load(options.checkpoint)
    weights = house.instance.weights_version
    known = known_shortfalls().of(weights)
    all_steps = options.steps or (DEFAULT_STEPS,)
    progress.say("timing the model")
    speeds = {steps: frames_a_second(house, steps) for steps in all_steps}
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
        jobs = _soon_told(jobs, workers)
    found = _play(house, options.checkpoint, jobs, workers, progress)
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


def _soon_told(jobs: Sequence[Job], workers: int) -> list[Job]:
    """Put short jobs before long ones, so that who stops a run early has something of it.

    The longest begin at once all the same, on all workers but one: the run takes no longer.
    """
    by_cost = sorted(jobs, key=lambda job: job.cost)
    at_once = by_cost[max(0, len(by_cost) - workers + 1) :]
    return [*reversed(at_once), *by_cost[: len(by_cost) - len(at_once)]]


@dataclass(slots=True)
class _Found:
    """What came of the jobs that are done.

    Attributes:
        samples: by the number of denoise steps.
    """

    samples: dict[int, list[Sample]]
    jobs: int = 0


def _play(
    house: RigParts, checkpoint: str | None, jobs: Sequence[Job], workers: int, progress: Progress
) -> _Found:
    """Play until all is done, or somebody stops it."""
    found = _Found({job.steps: [] for job in jobs})
    progress.expect(sum(job.cost for job in jobs))
    progress.say(f"{len(jobs)} parts")
    with (
        suppress(KeyboardInterrupt),
        closing(play_all(house, checkpoint, jobs, workers, progress.advance)) as playing,
    ):
        for done in playing:
            found.samples[done.job.steps] += done.samples
            found.jobs += 1
            progress.say(f"{found.jobs} of {len(jobs)} parts done")
    return found


def rows_of(samples: Sequence[Sample], known: Mapping[str, Shortfall]) -> tuple[ReportRow, ...]:
    """Make a row of every measure that was tried, in the order of the table."""
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


def frames_a_second(house: RigParts, steps: int) -> float:
    """Return the frame rate of one session that walks, the median of a few rounds."""
    worlds = draw_worlds(Stream.SPEED, 1)
    right = np.full(1, Action.RIGHT)
    rates = []
    with closing(ServedModelRig(house, steps).stage(worlds)) as stage:
        stage.begin()
        for _ in range(WARM_UP_FRAMES):
            stage.act(right)
        for _ in range(SPEED_ROUNDS):
            started_s, frames, spent_s = time.perf_counter(), 0, 0.0
            while frames < ROUND_FRAMES and spent_s < ROUND_S:
                stage.act(right)
                frames, spent_s = frames + 1, time.perf_counter() - started_s
            rates.append(frames / spent_s)
    return statistics.median(rates)
