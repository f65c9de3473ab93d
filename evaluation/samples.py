"""Samples and what they say: a figure, how many trials, and a 95 % interval.

Trials in one world are alike, so that worlds are what counts as independent, everywhere.

Shares: Wilson's interval (1927) for the effective number of trials, which is that of the trials
divided by the design effect between worlds, as Korn and Graubard (Survey Methodology 24, 1998) do
it, their correction for few worlds included. With one trial a world that is Wilson's interval as it
stands. When all trials or none succeed, nothing says how alike they are: then the worlds count.

Means of anything else: Student's t over the means of worlds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, sqrt

Z = 1.959964
"""Quantile of the normal distribution that leaves 2.5 % above it."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What one world gave for one measure.

    Attributes:
        measure: which measure, by its name in `bars.py`.
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
        trials: how many the figure is the mean of.
        worlds: how many worlds they are from.
    """

    value: float
    low: float
    high: float
    trials: int
    worlds: int


def estimate(samples: Sequence[Sample], *, share: bool, most: float = inf) -> Estimate:
    """Return the mean over all trials of one measure, and how sure it is.

    Args:
        samples: of that measure.
        share: whether trials succeed or fail.
        most: what no figure can be above, nor below zero.

    Raises:
        ValueError: there is no trial.
    """
    merged = _by_world(samples)
    trials = sum(sample.trials for sample in merged)
    if not trials:
        raise ValueError("nothing was tried")
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
    """Cluster by world; a single world says nothing of others, so that its interval is a point."""
    count = len(worlds)
    if count < 2:
        return value, value
    trials = sum(world.trials for world in worlds)
    squares = sum((world.total - value * world.trials) ** 2 for world in worlds)
    half = student(count - 1) * sqrt(squares * count / (count - 1)) / trials
    return value - half, value + half
