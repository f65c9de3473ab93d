"""One evaluation, from its options to its report."""

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import inf

import numpy as np

from reverie.bench.machine import this_machine
from reverie.evaluation.bars import MEASURES, Shortfall, Unit, Verdict, judge, known_shortfalls
from reverie.evaluation.crew import Job, play_all
from reverie.evaluation.plan import FULL, QUICK, Plan
from reverie.evaluation.report import Column, Report, Row
from reverie.evaluation.samples import Sample, estimate
from reverie.evaluation.stage import House, ServedTheatre
from reverie.evaluation.worlds import Stream, draw_worlds
from reverie.models.pocket.biomes import Action
from reverie.models.pocket.spec import DEFAULT_STEPS

WARM_UP_FRAMES = 8
SPEED_ROUNDS, ROUND_FRAMES = 3, 20

Progress = Callable[[int, int], None]
"""Told how many jobs are done, of how many."""


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """What to measure, and how long.

    Attributes:
        quick: fewer trials of everything.
        steps: denoise steps to compare; none takes those that are served.
        checkpoint: weights; None takes those that ship.
        workers: processes that play; 0 takes one a core, four at most.
        plan: what is tried instead of what `quick` says.
    """

    quick: bool = False
    steps: tuple[int, ...] = ()
    checkpoint: str | None = None
    workers: int = 0
    plan: Plan | None = None


def run_evaluation(options: EvaluationOptions, progress: Progress | None = None) -> Report:
    """Measure everything; two minutes when quick, about ten in full, for each number of steps.

    Raises:
        CheckpointError: the weights are missing or do not fit.
        RolloutError: the loop failed.
    """
    machine, started_s = this_machine(), time.monotonic()
    house = House.load(options.checkpoint)
    weights = house.instance.weights_version
    known = known_shortfalls().of(weights)
    all_steps = options.steps or (DEFAULT_STEPS,)
    speeds = {steps: frames_a_second(house, steps) for steps in all_steps}
    plan = options.plan or (QUICK if options.quick else FULL)
    jobs = [
        Job(part.trial, worlds, steps)
        for part in plan
        for steps in all_steps
        for worlds in part.groups()
    ]
    workers = options.workers or min(4, os.cpu_count() or 1)
    samples: dict[int, list[Sample]] = {steps: [] for steps in all_steps}
    for count, done in enumerate(play_all(house, options.checkpoint, jobs, workers), start=1):
        samples[done.job.steps] += done.samples
        if progress is not None:
            progress(count, len(jobs))
    return Report(
        weights=weights,
        plan="quick" if options.quick else "full",
        served_steps=DEFAULT_STEPS,
        seconds=time.monotonic() - started_s,
        machine=machine,
        columns=tuple(
            Column(steps, speeds[steps], rows_of(samples[steps], known)) for steps in all_steps
        ),
    )


def rows_of(samples: Sequence[Sample], known: Mapping[str, Shortfall]) -> tuple[Row, ...]:
    """Make a row of every measure that was tried, in the order of the table."""
    rows = []
    for measure in MEASURES:
        own = [sample for sample in samples if sample.measure == measure.name]
        if own:
            most = inf if measure.unit is Unit.DB else 1.0
            found = estimate(own, share=measure.unit is Unit.SHARE, most=most)
            verdict = judge(measure, found, known)
            why = known[measure.name].why if verdict is Verdict.SHORT else ""
            rows.append(Row(measure, found, verdict, why))
    return tuple(rows)


def frames_a_second(house: House, steps: int) -> float:
    """Return the frame rate of one session that walks, the median of a few rounds."""
    worlds = draw_worlds(Stream.SPEED, 1)
    right = np.full(1, Action.RIGHT)
    rates = []
    with closing(ServedTheatre(house, steps).stage(worlds)) as stage:
        stage.begin()
        for _ in range(WARM_UP_FRAMES):
            stage.act(right)
        for _ in range(SPEED_ROUNDS):
            started_s = time.perf_counter()
            for _ in range(ROUND_FRAMES):
                stage.act(right)
            rates.append(ROUND_FRAMES / (time.perf_counter() - started_s))
    return statistics.median(rates)
