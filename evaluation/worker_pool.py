"""The crew: processes that play groups of worlds beside each other, one thread each."""

import multiprocessing
import signal
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from multiprocessing.context import SpawnContext
from typing import Protocol

from reverie.evaluation.model_rig import RigParts, ServedModelRig
from reverie.evaluation.plan import step_cost
from reverie.evaluation.samples import Sample
from reverie.evaluation.trials import Trial
from reverie.evaluation.worlds import EvaluatedWorld

TOLD_EVERY_S = 0.5
"""How often whoever waits is told how far the crew has come."""

Told = Callable[[float], None]
"""Hears how much is done, in steps of one world."""


@dataclass(frozen=True, slots=True)
class Job:
    """One trial with one group of worlds.

    Attributes:
        steps: denoise steps of a frame.
        cost: how long it takes, in steps of one world.
    """

    trial: Trial
    worlds: tuple[EvaluatedWorld, ...]
    steps: int
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class JobResult:
    """What came of a job."""

    job: Job
    samples: tuple[Sample, ...]


class Count(Protocol):
    """How much is done, which several processes add to."""

    value: float

    def get_lock(self) -> AbstractContextManager[bool]:
        """Return what keeps the others out meanwhile."""


def play(house: RigParts, job: Job, told: Told | None = None) -> JobResult:
    """Play one job on a loaded model.

    Args:
        house: the model.
        job: what to play.
        told: hears of each step what it cost, and at the end what the job was said to cost more.
    """
    counted = 0.0

    def acted(worlds: int) -> None:
        nonlocal counted
        more = min(step_cost(worlds), job.cost - counted)
        counted += more
        if told is not None:
            told(more)

    samples = tuple(job.trial(ServedModelRig(house, job.steps, acted), job.worlds))
    if told is not None:
        told(job.cost - counted)
    return JobResult(job, samples)


def play_all(
    house: RigParts,
    checkpoint: str | None,
    jobs: Sequence[Job],
    workers: int,
    told: Told | None = None,
) -> Generator[JobResult, None, None]:
    """Play jobs and yield each when it is done.

    Args:
        house: a loaded model, for one worker: that is this process.
        checkpoint: the weights of that model, for several workers to load themselves.
        jobs: what there is to do, the longest first.
        workers: how many play at once.
        told: hears of everything that is done, a step or some steps at a time.
    """
    if workers == 1:
        yield from (play(house, job, told) for job in jobs)
        return
    context = multiprocessing.get_context("spawn")
    yield from _beside_each_other(context, checkpoint, jobs, workers, told)


def _beside_each_other(
    context: SpawnContext,
    checkpoint: str | None,
    jobs: Sequence[Job],
    workers: int,
    told: Told | None,
) -> Generator[JobResult, None, None]:
    count, heard = context.Value("d", 0.0), 0.0
    ours = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, context, _Worker.load, (checkpoint, count))
    finished = False
    try:
        playing = {pool.submit(_Worker.play, job) for job in jobs}
        while playing:
            done, playing = wait(playing, TOLD_EVERY_S, FIRST_COMPLETED)
            if told is not None:
                now = count.value
                told(now - heard)
                heard = now
            for future in done:
                yield future.result()
        finished = True
    finally:
        if not finished:  # they are in the middle of jobs that nobody waits for
            for child in set(multiprocessing.active_children()) - ours:
                child.terminate()
        pool.shutdown(cancel_futures=True)


class _Worker:
    """What a worker process keeps between jobs."""

    house: RigParts
    count: Count

    @classmethod
    def load(cls, checkpoint: str | None, count: Count) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asked for the work ends it
        cls.count = count
        cls.house = RigParts.load(checkpoint)

    @classmethod
    def play(cls, job: Job) -> JobResult:
        return play(cls.house, job, cls._add)

    @classmethod
    def _add(cls, more: float) -> None:
        with cls.count.get_lock():
            cls.count.value += more
