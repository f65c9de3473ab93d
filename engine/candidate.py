"""What a driver offers to the scheduler."""

from dataclasses import dataclass

from reverie.models.loop import WorkPlan


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit that could run now.

    Attributes:
        deadline_us: when the viewer runs out of frames.
        running: whether the session has put out a chunk, so that somebody is watching it.
    """

    session: str
    plan: WorkPlan
    deadline_us: int
    running: bool
