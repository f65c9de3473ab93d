"""The chunk in the making: what it has taken, and how far it is."""

from dataclasses import dataclass, field

from reverie.engine.emissions import ControlApplied
from reverie.engine.mailbox import Taken
from reverie.models.loop import PromptNotes


@dataclass(frozen=True, slots=True)
class TakenAt:
    """Controls, and the step that took them."""

    taken: Taken
    step: int


@dataclass(slots=True)
class Making:
    """Everything about one chunk that ends with it.

    Attributes:
        taken: controls whose receipts are not out yet; a rollback puts them back.
        notes: what the text encoder had to say about the prompt among them.
        begun: a unit of the chunk has run, so that it is not a place to stop.
        open: the chunk has taken controls and is not committed.
        frames_out: some of its frames are out, so that its number is used up.
        refreshed: it was planned anew for controls that came while it waited at the lead.
        spent_us: device time of its uncommitted units: what planning anew would cost.
    """

    taken: list[TakenAt] = field(default_factory=list)
    notes: PromptNotes | None = None
    begun: bool = False
    open: bool = False
    frames_out: bool = False
    refreshed: bool = False
    spent_us: int = 0

    def receipts(self, session: str, chunk: int, pts_us: int) -> list[ControlApplied]:
        """Return a receipt for each control that acts in the chunk, and count them as given."""
        notes = self.notes or PromptNotes()
        receipts = []
        for entry in self.taken:
            for control in entry.taken.receipts:
                applied = ControlApplied(session, control, entry.step, chunk, pts_us)
                if control == entry.taken.prompt:
                    applied = ControlApplied(
                        session,
                        control,
                        entry.step,
                        chunk,
                        pts_us,
                        notes.unknown_words,
                        notes.truncated_at,
                    )
                receipts.append(applied)
        self.taken.clear()
        return receipts
