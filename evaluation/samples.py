"""Samples and estimates: a figure, the number of trials, and a 95 % interval.

Trials in one world are correlated, so worlds are the independent samples everywhere.

Shares: Wilson's interval (1927) for the effective number of trials, which is their number divided
by the design effect between worlds, as Korn and Graubard (Survey Methodology 24, 1998) do it, with
their correction for few worlds. With one trial for each world that is the plain Wilson interval.
When all trials or none succeed, the correlation is unknown: then the number of worlds counts.

Means of anything else: Student's t over the means of worlds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, sqrt

Z = 1.959964
"""Quantile of the normal distribution that leaves 2.5 % above it."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The result of one measure in one world.

    Attributes:
        measure: its name in `bars.py`.
        world: seed of the world.
        total: sum over the trials: of ones for a share.
        trials: how many there were.
    """

    measure: str
    world: int
    total: float
    trials: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with a 95 % interval.

    Attributes:
        trials: the figure is the mean of so many.
        worlds: the number of worlds of these trials.
    """

    value: float
    low: float
    high: float
    trials: int
    worlds: int


def estimate(samples: Sequence[Sample], *, share: bool, most: float = inf) -> Estimate:
    """Return the mean over all trials of one measure, with its interval.

    Args:
        samples: of that measure.
        share: whether trials succeed or fail.
        most: the largest possible figure; the smallest is zero.

    Raises:
        ValueError: there are no trials.
    """
    merged = _by_world(samples)
    trials = sum(sample.trials for sample in merged)
    if not trials:
        raise ValueError("there are no trials")
    value = sum(sample.total for sample in merged) / trials
    low, high = _of_share(merged, value) if share else _of_mean(merged, value)
    return Estimate(value, max(0.0, low), min(most, high), trials, len(merged))


def wilson(value: float, trials: float) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share of `trials` independent trials."""
    weight = Z**2 / trials
    middle = (value + weight / 2) / (1 + weight)
    half = sqrt(weight * (value * (1 - value) + weight / 4)) / (1 + weight)
    return max(0.0, middle - half), min(1.0, middle + half)


def student(freedom: int) -> float:
    """Return the quantile of Student's t that leaves 2.5 % above it.

    Good to 1 % from 3 degrees of freedom on (Abramowitz and Stegun, 26.7.5).
    """
    if freedom <= 2:
        return (12.706, 4.303)[freedom - 1]
    terms = (
        (Z**3 + Z) / 4,
        (5 * Z**5 + 16 * Z**3 + 3 * Z) / 96,
        (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / 384,
    )
    return Z + float(sum(term / freedom**power for power, term in enumerate(terms, start=1)))


def _by_world(samples: Iterable[Sample]) -> list[Sample]:
    merged: dict[int, Sample] = {}
    for one in samples:
        known = merged.get(one.world, Sample(one.measure, one.world, 0.0, 0))
        merged[one.world] = Sample(
            one.measure, one.world, known.total + one.total, known.trials + one.trials
        )
    return [sample for sample in merged.values() if sample.trials]


def _of_share(worlds: Sequence[Sample], value: float) -> tuple[float, float]:
    trials = sum(world.trials for world in worlds)
    if len(worlds) == trials:
        return wilson(value, trials)
    if not 0 < value < 1 or len(worlds) < 2:
        return wilson(value, len(worlds))
    count = len(worlds)
    squares = sum((world.total - value * world.trials) ** 2 for world in worlds)
    variance = squares * count / (count - 1) / trials**2
    few = (Z / student(count - 1)) ** 2
    effective = few * value * (1 - value) / variance if variance else float(trials)
    return wilson(value, min(effective, trials))


def _of_mean(worlds: Sequence[Sample], value: float) -> tuple[float, float]:
    """Cluster by world; a single world says nothing about others: its interval is a point."""
    count = len(worlds)
    if count < 2:
        return value, value
    trials = sum(world.trials for world in worlds)
    squares = sum((world.total - value * world.trials) ** 2 for world in worlds)
    half = student(count - 1) * sqrt(squares * count / (count - 1)) / trials
    return value - half, value + half
