"""What a driver offers to the scheduler."""

from dataclasses import dataclass

from reverie.models.loop import WorkPlan


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit that could run now.

    Attributes:
        deadline_us: when the viewer runs out of frames.
        running: whether a chunk of it is in the making: what has begun is finished first.
    """

    session: str
    plan: WorkPlan
    deadline_us: int
    running: bool
