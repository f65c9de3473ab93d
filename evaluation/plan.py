"""How much is tried: counts, never times, so that a busy machine is slower and nothing else."""

from collections.abc import Iterator
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
from reverie.evaluation.worlds import Stream, World, draw_worlds


@dataclass(frozen=True, slots=True)
class Part:
    """One trial over all its worlds.

    Attributes:
        group: worlds that play together at most; groups run beside each other.
    """

    trial: Trial
    stream: Stream
    worlds: int
    group: int

    def groups(self) -> Iterator[tuple[World, ...]]:
        """Cut the worlds into groups of nearly equal size."""
        worlds = draw_worlds(self.stream, self.worlds)
        count = -(-len(worlds) // self.group)
        for number in range(count):
            yield worlds[number::count]


Plan = tuple[Part, ...]
"""Longest parts first, so that no worker is left with one at the end."""

QUICK: Plan = (
    Part(try_long_walks, Stream.WALKS, worlds=3, group=2),
    Part(try_standing, Stream.STILL, worlds=4, group=4),
    Part(try_short_walks, Stream.SHORT_WALKS, worlds=6, group=6),
    Part(try_actions, Stream.ACTIONS, worlds=12, group=12),
    Part(try_prompts, Stream.PROMPTS, worlds=16, group=16),
    Part(try_memory, Stream.MEMORY, worlds=8, group=8),
    Part(try_narration, Stream.NARRATION, worlds=12, group=12),
    Part(try_narration_walking, Stream.NARRATION, worlds=8, group=8),
)
"""About 5,200 frames, and some 100 utterances."""

FULL: Plan = (
    Part(try_long_walks, Stream.WALKS, worlds=24, group=6),
    Part(try_standing, Stream.STILL, worlds=24, group=12),
    Part(try_short_walks, Stream.SHORT_WALKS, worlds=24, group=12),
    Part(try_actions, Stream.ACTIONS, worlds=48, group=24),
    Part(try_prompts, Stream.PROMPTS, worlds=96, group=24),
    Part(try_memory, Stream.MEMORY, worlds=48, group=24),
    Part(try_narration, Stream.NARRATION, worlds=48, group=24),
    Part(try_narration_walking, Stream.NARRATION, worlds=48, group=24),
)
"""About 35,000 frames, and some 400 utterances."""
