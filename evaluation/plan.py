"""How much is tried: counts, never times, so that a busy machine only makes a run slower.

A quick run has a time limit. So it measures the speed of the model first and leaves out whole parts
of the plan, the longest first, until the rest fits. A part that is tried is always tried in full.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reverie.evaluation.narration import try_narration, try_narration_walking
from reverie.evaluation.trials import (
    Trial,
    try_actions,
    try_long_walks,
    try_memory,
    try_prompts,
    try_short_walks,
    try_standing,
)
from reverie.evaluation.worlds import EvaluatedWorld, Stream, draw_worlds

# The cost of a step of N worlds together, in steps of one world: measured on two cores.
_STEP_ALONE, _STEP_EACH = 0.6, 0.27
_CROWDED = 1.3
"""How much longer a step takes while other workers run."""


@dataclass(frozen=True, slots=True)
class Part:
    """One trial over all its worlds.

    Attributes:
        name: for the report.
        trial: what is tried.
        stream: where its worlds come from.
        worlds: how many there are.
        group: largest number of worlds in a batch; groups run in parallel.
        steps: frames, or equally long units, that a world makes one after the other.
    """

    name: str
    trial: Trial
    stream: Stream
    worlds: int
    group: int
    steps: int

    def groups(self) -> Iterator[tuple[EvaluatedWorld, ...]]:
        """Split the worlds into groups of nearly equal size."""
        worlds = draw_worlds(self.stream, self.worlds)
        count = -(-len(worlds) // self.group)
        for number in range(count):
            yield worlds[number::count]

    def costs(self) -> list[float]:
        """Return the cost of each group, in steps of one world."""
        return [self.steps * step_cost(len(worlds)) for worlds in self.groups()]


def step_cost(worlds: int) -> float:
    """Return the cost of a step of so many worlds, in steps of one world."""
    return _STEP_ALONE + _STEP_EACH * worlds


Plan = tuple[Part, ...]
"""Longest parts first, so that no long part starts last."""

QUICK: Plan = (
    Part("walking 1,000 frames", try_long_walks, Stream.WALKS, 3, group=3, steps=1001),
    Part("standing 300 frames", try_standing, Stream.STILL, 4, group=4, steps=301),
    Part("walking 100 frames", try_short_walks, Stream.SHORT_WALKS, 6, group=6, steps=105),
    Part("actions", try_actions, Stream.ACTIONS, 12, group=12, steps=15),
    Part("prompts", try_prompts, Stream.PROMPTS, 16, group=16, steps=5),
    Part("memory", try_memory, Stream.MEMORY, 8, group=8, steps=9),
    Part("narration", try_narration, Stream.NARRATION, 12, group=12, steps=12),
    Part("narration of a step", try_narration_walking, Stream.NARRATION, 8, group=8, steps=3),
)
"""About 5,200 frames and 100 utterances."""

FULL: Plan = (
    Part("walking 1,000 frames", try_long_walks, Stream.WALKS, 24, group=6, steps=1001),
    Part("standing 300 frames", try_standing, Stream.STILL, 24, group=12, steps=301),
    Part("walking 100 frames", try_short_walks, Stream.SHORT_WALKS, 24, group=12, steps=105),
    Part("actions", try_actions, Stream.ACTIONS, 48, group=24, steps=15),
    Part("prompts", try_prompts, Stream.PROMPTS, 96, group=24, steps=5),
    Part("memory", try_memory, Stream.MEMORY, 48, group=24, steps=9),
    Part("narration", try_narration, Stream.NARRATION, 48, group=24, steps=12),
    Part("narration of a step", try_narration_walking, Stream.NARRATION, 48, group=24, steps=3),
)
"""About 35,000 frames and 400 utterances."""


def predicted_s(plan: Plan, speeds: Sequence[float], workers: int) -> float:
    """Return how many seconds a plan takes.

    Args:
        plan: what is tried.
        speeds: frames a second of one session, for each number of denoise steps.
        workers: how many run in parallel.
    """
    jobs = [cost / fps for part in plan for cost in part.costs() for fps in speeds]
    crowded = _CROWDED if workers > 1 else 1.0
    return crowded * max([sum(jobs) / workers, *jobs]) if jobs else 0.0


def within(plan: Plan, speeds: Sequence[float], workers: int, most_s: float) -> Plan:
    """Return the parts of a plan that fit into a time; at least one part."""
    kept = list(plan)
    while len(kept) > 1 and predicted_s(tuple(kept), speeds, workers) > most_s:
        kept.remove(max(kept, key=lambda part: max(part.costs())))
    return tuple(kept)
