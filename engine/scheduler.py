"""Which units run next. API SKELETON."""

from collections.abc import Sequence

from reverie.engine.driver import Candidate


class StepScheduler:
    """Earliest deadline first, running loops first, nobody starves. Pure: no clock, no tensors."""

    def __init__(self, max_batch: int = 8) -> None: ...

    def pick(self, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """Return the units to run now in one batch (equal batch keys); empty when there are none."""
        raise NotImplementedError

    def forget(self, session: str) -> None:
        """Drop what is known of a session that has ended."""
