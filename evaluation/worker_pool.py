"""The worker pool: processes that run groups of worlds in parallel, one thread each."""

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

REPORT_EVERY_S = 0.5
"""How often the progress of the workers is reported."""

ReportProgress = Callable[[float], None]
"""Takes the finished work, in steps of one world."""


@dataclass(frozen=True, slots=True)
class Job:
    """One trial with one group of worlds.

    Attributes:
        steps: denoise steps of a frame.
        cost: in steps of one world.
    """

    trial: Trial
    worlds: tuple[EvaluatedWorld, ...]
    steps: int
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class JobResult:
    """A finished job with its samples."""

    job: Job
    samples: tuple[Sample, ...]


class Count(Protocol):
    """A counter of finished work that several processes add to."""

    value: float

    def get_lock(self) -> AbstractContextManager[bool]:
        """Return the lock of the counter."""


def play(parts: RigParts, job: Job, on_progress: ReportProgress | None = None) -> JobResult:
    """Run one job on a loaded model.

    Args:
        parts: the model.
        job: what to run.
        on_progress: called with the cost of each step, and with the rest at the end.
    """
    counted = 0.0

    def on_step(worlds: int) -> None:
        nonlocal counted
        more = min(step_cost(worlds), job.cost - counted)
        counted += more
        if on_progress is not None:
            on_progress(more)

    samples = tuple(job.trial(ServedModelRig(parts, job.steps, on_step), job.worlds))
    if on_progress is not None:
        on_progress(job.cost - counted)
    return JobResult(job, samples)


def play_all(
    parts: RigParts,
    checkpoint: str | None,
    jobs: Sequence[Job],
    workers: int,
    on_progress: ReportProgress | None = None,
) -> Generator[JobResult, None, None]:
    """Run jobs and yield each result when it is ready.

    Args:
        parts: a loaded model, for one worker, which is this process.
        checkpoint: the weights of that model, for several workers that load it themselves.
        jobs: what to run, the longest first.
        workers: how many run in parallel.
        on_progress: called with the finished work, one or several steps at a time.
    """
    if workers == 1:
        yield from (play(parts, job, on_progress) for job in jobs)
        return
    context = multiprocessing.get_context("spawn")
    yield from _play_in_processes(context, checkpoint, jobs, workers, on_progress)


def _play_in_processes(
    context: SpawnContext,
    checkpoint: str | None,
    jobs: Sequence[Job],
    workers: int,
    on_progress: ReportProgress | None,
) -> Generator[JobResult, None, None]:
    count, heard = context.Value("d", 0.0), 0.0
    ours = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, context, _Worker.load, (checkpoint, count))
    finished = False
    try:
        playing = {pool.submit(_Worker.play, job) for job in jobs}
        while playing:
            done, playing = wait(playing, REPORT_EVERY_S, FIRST_COMPLETED)
            if on_progress is not None:
                now = count.value
                on_progress(now - heard)
                heard = now
            for future in done:
                yield future.result()
        finished = True
    finally:
        if not finished:  # the workers run jobs whose results are not needed any more
            for child in set(multiprocessing.active_children()) - ours:
                child.terminate()
        pool.shutdown(cancel_futures=True)


class _Worker:
    """The state of a worker process between jobs."""

    parts: RigParts
    count: Count

    @classmethod
    def load(cls, checkpoint: str | None, count: Count) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends the workers
        cls.count = count
        cls.parts = RigParts.load(checkpoint)

    @classmethod
    def play(cls, job: Job) -> JobResult:
        return play(cls.parts, job, cls._add)

    @classmethod
    def _add(cls, more: float) -> None:
        with cls.count.get_lock():
            cls.count.value += more
