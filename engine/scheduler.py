"""Which units run next: a policy over candidates that knows no tensors and no clock."""

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from reverie.models.contract.loop import WorkPlan

log = logging.getLogger(__name__)

GROWS_AFTER = 256
"""Full batches in a row that have room before a larger one is tried again."""


@dataclass(frozen=True, slots=True)
class LoopOf:
    """One loop of one session."""

    session: str
    loop: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit that could run now.

    Attributes:
        deadline_us: when the viewer runs out of frames, or a word is late.
        running: whether a chunk of it is in progress: what has begun is finished first.
    """

    session: str
    plan: WorkPlan
    deadline_us: int
    running: bool

    @property
    def owner(self) -> LoopOf:
        """The loop that it belongs to."""
        return LoopOf(self.session, self.plan.batch_key.loop)


class BatchLimit:
    """Shrinks when memory runs out, and grows again once it has sufficed for a while.

    Attributes:
        size: units that may run at once now.
    """

    def __init__(self, most: int) -> None:
        assert most > 0, "a batch has at least one unit"
        self.size = most
        self._most = most
        self._in_a_row = 0

    def ran(self, size: int) -> None:
        """Note that memory sufficed for so many units."""
        if size < self.size or self.size == self._most:
            return
        self._in_a_row += 1
        if self._in_a_row >= GROWS_AFTER:
            self.size, self._in_a_row = min(self._most, 2 * self.size), 0

    def ran_out(self, size: int) -> None:
        """Note that memory ran out for so many units."""
        smaller = max(1, size // 2)
        self._in_a_row = 0
        if smaller < self.size:
            log.warning("memory ran out for %d units at once; %d are run now", size, smaller)
            self.size = smaller


@dataclass(frozen=True, slots=True)
class Claim:
    """A candidate that may run next, and how urgent its session is."""

    candidate: Candidate
    urgency: tuple[int, bool, int, str]


class StepScheduler:
    """Chunks in progress first, then earliest deadline first.

    No loop starves: one that was ready and passed over long enough goes first. The loops of one
    session take turns: none waits for more than one unit of each other, so that words come while
    frames are made, and frames while words are.

    Attributes:
        limit: units that run at once at most.
    """

    def __init__(self, max_batch: int = 8, patience: int = 8) -> None:
        """Set the limits.

        Args:
            max_batch: units that run at once at most.
            patience: times that a loop is passed over, for each that competes with it. A chunk has
                several units, so taking turns alone passes it over a few times for each.
        """
        self.limit = BatchLimit(max_batch)
        self._patience = patience
        self._passed: dict[LoopOf, int] = {}
        self._waited: dict[LoopOf, int] = {}  # units of its siblings, of those that are ready

    def pick(self, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """Return the units to run now: the most urgent, and others with its batch key."""
        if not candidates:
            return ()
        ranked = [claim.candidate for claim in sorted(self._claims(candidates), key=_urgency)]
        key = ranked[0].plan.batch_key
        batch = [candidate for candidate in ranked if candidate.plan.batch_key == key]
        picked = tuple(batch[: self.limit.size])
        self._note(candidates, picked)
        return picked

    def forget(self, session: str) -> None:
        """Drop what is known of a session that has ended."""
        for counts in (self._passed, self._waited):
            for loop in [loop for loop in counts if loop.session == session]:
                del counts[loop]

    def _claims(self, candidates: Sequence[Candidate]) -> list[Claim]:
        patience = self._patience * len(candidates)
        sessions: defaultdict[str, list[Candidate]] = defaultdict(list)
        for candidate in candidates:
            sessions[candidate.session].append(candidate)
        claims = []
        for loops in sessions.values():
            urgencies = [self._own_urgency(candidate, patience) for candidate in loops]
            owed = max(self._waited.get(candidate.owner, 0) for candidate in loops)
            for candidate, urgency in zip(loops, urgencies, strict=True):
                if not owed:
                    claims.append(Claim(candidate, urgency))
                elif self._waited.get(candidate.owner, 0) == owed:
                    # The others of its session wait for it, so it is as urgent as they are.
                    claims.append(Claim(candidate, min(urgencies)))
        return claims

    def _own_urgency(self, candidate: Candidate, patience: int) -> tuple[int, bool, int, str]:
        passed = self._passed.get(candidate.owner, 0)
        starving = passed if passed >= patience else 0
        return (-starving, not candidate.running, candidate.deadline_us, candidate.session)

    def _note(self, candidates: Sequence[Candidate], picked: Sequence[Candidate]) -> None:
        ran: defaultdict[str, int] = defaultdict(int)
        for chosen in picked:
            ran[chosen.session] += 1
        waited = {}
        for candidate in candidates:
            owner, runs = candidate.owner, candidate in picked
            self._passed[owner] = 0 if runs else self._passed.get(owner, 0) + 1
            waited[owner] = 0 if runs else self._waited.get(owner, 0) + ran[candidate.session]
        self._waited = waited


def _urgency(claim: Claim) -> tuple[int, bool, int, str]:
    return claim.urgency
