"""Which units run next: a policy over candidates that knows no tensors and no clock."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from reverie.engine.batch_limit import BatchLimit
from reverie.engine.candidate import Candidate, LoopOf


@dataclass(frozen=True, slots=True)
class Claim:
    """A candidate whose turn it may be, and how urgent its session is."""

    candidate: Candidate
    urgency: tuple[int, bool, int, str]


class StepScheduler:
    """Chunks in the making first, then earliest deadline first.

    Nobody starves: a loop that was ready and passed over long enough goes first. The loops of one
    session take turns: none waits for more than one unit of each other, so that words come while
    frames are made, and frames while words are.

    Attributes:
        limit: units that run at once at most.
    """

    def __init__(self, max_batch: int = 8, patience: int = 8) -> None:
        """Wait for nothing.

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
        picked = batch[: self.limit.size]
        waited = tuple(
            replace(chosen, waited=self._waited.get(chosen.owner, 0)) for chosen in picked
        )
        self._note(candidates, picked)
        return waited

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
