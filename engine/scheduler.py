"""Which units run next: a policy over candidates that knows no tensors and no clock."""

from collections.abc import Sequence

from reverie.engine.candidate import Candidate


class StepScheduler:
    """Earliest deadline first; sessions that are being watched before those that begin.

    Nobody starves: whoever was ready and passed over `patience` times in a row goes first.
    """

    def __init__(self, max_batch: int = 8, patience: int = 16) -> None:
        """Run at most `max_batch` units at once."""
        assert max_batch > 0, "a batch has at least one unit"
        self._max_batch = max_batch
        self._patience = patience
        self._passed: dict[str, int] = {}

    def pick(self, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """Return the units to run now: the most urgent, and others with its batch key."""
        if not candidates:
            return ()
        ranked = sorted(candidates, key=self._urgency)
        key = ranked[0].plan.batch_key
        batch = [candidate for candidate in ranked if candidate.plan.batch_key == key]
        picked = tuple(batch[: self._max_batch])
        sessions = {candidate.session for candidate in picked}
        for candidate in candidates:
            passed = self._passed.get(candidate.session, 0) + 1
            self._passed[candidate.session] = 0 if candidate.session in sessions else passed
        return picked

    def forget(self, session: str) -> None:
        """Drop what is known of a session that has ended."""
        self._passed.pop(session, None)

    def _urgency(self, candidate: Candidate) -> tuple[int, bool, int, str]:
        passed = self._passed.get(candidate.session, 0)
        starving = passed if passed >= self._patience else 0
        return (-starving, not candidate.running, candidate.deadline_us, candidate.session)
