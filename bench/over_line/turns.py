"""What a viewer has seen in one turn, and in several."""

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from reverie.bench.latency import at
from reverie.bench.over_line.toy_models import Toy

GIVE_UP_MS = 5000.0
"""A change of the key that was not seen by then counts with this time; as in `viewer.js`."""


class ViewerAnswer(TypedDict):
    """What `viewer.js` returns; times in ms of the page's clock."""

    firstMs: float | None
    shown: list[tuple[float, float]]
    commands: list[float]
    unseen: int
    quietMs: float
    keysMs: float
    endMs: float


@dataclass(frozen=True, slots=True)
class ViewerTurn:
    """What was seen.

    Attributes:
        setup_ms: from the first request to the first picture; None where none came.
        rate: pictures a second over those that the model makes, with no key.
        rate_with_keys: likewise, while the key changes.
        longest_gap_ms: longest time without another picture.
        ages_ms: of the pictures that were shown, from the end of their step, with no key.
        commands_ms: from a change of the key to the picture that shows it.
        unseen: how many changes of the key were never seen.
    """

    setup_ms: float | None
    rate: float
    rate_with_keys: float
    longest_gap_ms: float
    ages_ms: tuple[float, ...]
    commands_ms: tuple[float, ...]
    unseen: int

    @classmethod
    def of(cls, found: ViewerAnswer, toy: Toy) -> "ViewerTurn":
        """Sum up what the browser has seen of a toy."""
        begin, keys, end = found["quietMs"], found["keysMs"], found["endMs"]
        times = [time for time, _ in found["shown"] if begin <= time < end]

        def rate(since: float, until: float) -> float:
            shown = sum(since <= time < until for time in times)
            return shown * 1000 / (until - since) / toy.made_hz

        edges = [begin, *times, end]
        return cls(
            setup_ms=found["firstMs"],
            rate=rate(begin, keys),
            rate_with_keys=rate(keys, end),
            longest_gap_ms=max(after - before for before, after in itertools.pairwise(edges)),
            ages_ms=tuple(age for time, age in found["shown"] if begin <= time < keys),
            commands_ms=(*found["commands"], *[GIVE_UP_MS] * found["unseen"]),
            unseen=found["unseen"],
        )


@dataclass(frozen=True, slots=True)
class SideSummary:
    """The sum of the turns of one side of a row; in ms, and None where nothing was seen.

    Attributes:
        setup_ms: from the first request to the first picture.
        rate: pictures a second over those that the model makes, with no key.
        rate_with_keys: likewise, while the key changes.
        longest_gap_ms: longest time without another picture, in all turns.
        age_p50: of the pictures that were shown, from the end of their step.
        command_p50: from a change of the key to the picture that shows it.
        unseen: changes of the key that were never seen; they count as 5 s.
    """

    setup_ms: float | None
    rate: float
    rate_with_keys: float
    longest_gap_ms: float
    age_p50: float | None
    age_p95: float | None
    command_p50: float | None
    command_p95: float | None
    pictures: int
    commands: int
    unseen: int

    @classmethod
    def of(cls, turns: Sequence[ViewerTurn]) -> "SideSummary":
        """Sum up the turns of one side: medians of rates, the longest gap, all samples."""
        ages = [age for turn in turns for age in turn.ages_ms]
        commands = [took for turn in turns for took in turn.commands_ms]
        setups = [turn.setup_ms for turn in turns if turn.setup_ms is not None]
        return cls(
            setup_ms=_at(0.5, setups),
            rate=statistics.median(turn.rate for turn in turns),
            rate_with_keys=statistics.median(turn.rate_with_keys for turn in turns),
            longest_gap_ms=max(turn.longest_gap_ms for turn in turns),
            age_p50=_at(0.5, ages),
            age_p95=_at(0.95, ages),
            command_p50=_at(0.5, commands),
            command_p95=_at(0.95, commands),
            pictures=len(ages),
            commands=len(commands),
            unseen=sum(turn.unseen for turn in turns),
        )


def _at(part: float, values: list[float]) -> float | None:
    return at(part, values) if values else None
