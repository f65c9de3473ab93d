"""What a driver offers to the scheduler."""

from dataclasses import dataclass

from reverie.models.contract.loop import WorkPlan


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
        running: whether a chunk of it is in the making: what has begun is finished first.
        waited: units of its own session's other loops that ran while it could have; the scheduler
            fills it in.
    """

    session: str
    plan: WorkPlan
    deadline_us: int
    running: bool
    waited: int = 0

    @property
    def owner(self) -> LoopOf:
        """Whose unit it is."""
        return LoopOf(self.session, self.plan.batch_key.loop)
