"""Which units run next: a policy over candidates that knows no tensors and no clock."""

from collections.abc import Sequence
from dataclasses import dataclass

from reverie.engine.candidate import Candidate


@dataclass(frozen=True, slots=True)
class LoopOf:
    """One loop of one session: what waits for its turn."""

    session: str
    loop: str


class StepScheduler:
    """Chunks in the making first, then earliest deadline first.

    Nobody starves: a loop that was ready and passed over long enough goes first.
    """

    def __init__(self, max_batch: int = 8, patience: int = 8) -> None:
        """Wait for nothing.

        Args:
            max_batch: units that run at once at most.
            patience: times that a loop is passed over, for each that competes with it. A chunk has
                several units, so taking turns alone passes it over a few times for each.
        """
        assert max_batch > 0, "a batch has at least one unit"
        self._max_batch = max_batch
        self._patience = patience
        self._passed: dict[LoopOf, int] = {}

    def pick(self, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """Return the units to run now: the most urgent, and others with its batch key."""
        if not candidates:
            return ()
        patience = self._patience * len(candidates)
        ranked = sorted(candidates, key=lambda candidate: self._urgency(candidate, patience))
        key = ranked[0].plan.batch_key
        batch = [candidate for candidate in ranked if candidate.plan.batch_key == key]
        picked = tuple(batch[: self._max_batch])
        for candidate in candidates:
            loop = _loop_of(candidate)
            self._passed[loop] = 0 if candidate in picked else self._passed.get(loop, 0) + 1
        return picked

    def forget(self, session: str) -> None:
        """Drop what is known of a session that has ended."""
        for loop in [loop for loop in self._passed if loop.session == session]:
            del self._passed[loop]

    def _urgency(self, candidate: Candidate, patience: int) -> tuple[int, bool, int, str]:
        passed = self._passed.get(_loop_of(candidate), 0)
        starving = passed if passed >= patience else 0
        return (-starving, not candidate.running, candidate.deadline_us, candidate.session)


def _loop_of(candidate: Candidate) -> LoopOf:
    return LoopOf(candidate.session, candidate.plan.batch_key.loop)
