"""The crew: processes that play groups of worlds beside each other, one thread each."""

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

from reverie.evaluation.samples import Sample
from reverie.evaluation.stage import House, ServedTheatre
from reverie.evaluation.trials import Trial
from reverie.evaluation.worlds import World


@dataclass(frozen=True, slots=True)
class Job:
    """One trial with one group of worlds.

    Attributes:
        steps: denoise steps of a frame.
    """

    trial: Trial
    worlds: tuple[World, ...]
    steps: int


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a job."""

    job: Job
    samples: tuple[Sample, ...]


def play(house: House, job: Job) -> Done:
    """Play one job on a loaded model."""
    return Done(job, tuple(job.trial(ServedTheatre(house, job.steps), job.worlds)))


def play_all(
    house: House, checkpoint: str | None, jobs: Sequence[Job], workers: int
) -> Iterator[Done]:
    """Play jobs and yield each when it is done.

    Args:
        house: a loaded model, for one worker: that is this process.
        checkpoint: the weights of that model, for several workers to load themselves.
        jobs: what there is to do, the longest first.
        workers: how many play at once.
    """
    if workers == 1:
        yield from (play(house, job) for job in jobs)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _Worker.load, (checkpoint,)) as pool:
        for future in as_completed([pool.submit(_Worker.play, job) for job in jobs]):
            yield future.result()


class _Worker:
    """What a worker process keeps between jobs."""

    house: House

    @classmethod
    def load(cls, checkpoint: str | None) -> None:
        cls.house = House.load(checkpoint)

    @classmethod
    def play(cls, job: Job) -> Done:
        return play(cls.house, job)
