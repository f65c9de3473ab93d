"""The open chunk: the controls that its steps have taken, and how far it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reverie.engine.emissions import ControlApplied, ControlSuperseded
from reverie.engine.inputs import OPENING, ControlId, StreamInput
from reverie.engine.key_queue import TaggedEdge
from reverie.models.contract.controls import Controls
from reverie.models.contract.loop import PromptNotes

Receipt = ControlApplied | ControlSuperseded


@dataclass(frozen=True, slots=True)
class QueuedValue:
    """A waiting text or number, and the control that brought it; None for a silent one."""

    value: str | float
    control: ControlId | None


@dataclass(frozen=True, slots=True)
class TakenControls:
    """What one step took, with all that is needed to put it back.

    Attributes:
        receipts: the controls that act in the step, in the order in which they came.
        prompt: the control whose prompt acts, for what the text encoder has to say about it.
        acts: whether any of that came from a client and would be lost with the chunk; of a stream
            in which newer pictures replace older ones, none is.
    """

    controls: Controls
    receipts: tuple[ControlId, ...] = ()
    prompt: ControlId | None = None
    edges: Mapping[str, tuple[TaggedEdge, ...]] = field(default_factory=dict)
    latest: Mapping[str, QueuedValue] = field(default_factory=dict)
    turns: tuple[tuple[str, ControlId], ...] = ()
    media: Mapping[str, tuple[StreamInput, ...]] = field(default_factory=dict)
    acts: bool = False


@dataclass(frozen=True, slots=True)
class ControlStep:
    """Controls, and the step that took them."""

    taken: TakenControls
    step: int


@dataclass(slots=True)
class OpenChunk:
    """Everything about one chunk that ends with it.

    Attributes:
        opening: the session's opening prompt acts in it, and has no receipt yet.
        taken: controls whose receipts are not out yet; a rollback puts them back.
        notes: what the text encoder had to say about the prompt among them.
        turn_notes: the same for the turns among them, by their ids.
        begun: a unit of the chunk has run, so that it is not a place to stop.
        open: the chunk has taken controls and is not committed.
        frames_out: some of its frames are out, so that its number is used up.
        media_out: some of that can be seen or heard.
        acts: a client's control acts in it, so that it is not taken back for another one.
        refreshed: it was planned again for controls that came while it waited at the lead.
        spent_us: device time of its uncommitted units: what planning again would cost.
    """

    opening: bool = False
    taken: list[ControlStep] = field(default_factory=list)
    notes: PromptNotes | None = None
    turn_notes: dict[str, PromptNotes] = field(default_factory=dict)
    begun: bool = False
    open: bool = False
    frames_out: bool = False
    media_out: bool = False
    acts: bool = False
    refreshed: bool = False
    spent_us: int = 0

    def emptied(self, *, refreshed: bool = False) -> "OpenChunk":
        """Return the chunk as it is before its first unit; the controls must be put back."""
        return OpenChunk(opening=self.opening, refreshed=refreshed)

    def receipts(self, session: str, chunk: int, pts_us: int) -> list[Receipt]:
        """Return a receipt for each control that acts in the chunk, and count them as given."""
        notes = self.notes or PromptNotes()
        receipts: list[Receipt] = []

        def applied(control: ControlId, step: int, said: PromptNotes) -> ControlApplied:
            return ControlApplied(
                session,
                control,
                step,
                chunk,
                pts_us,
                said.unknown_words,
                said.truncated_at,
                said.dropped_messages,
            )

        if self.opening:
            newer = [entry.taken.prompt for entry in self.taken if entry.taken.prompt]
            receipts.append(
                ControlSuperseded(session, OPENING, newer[-1])
                if newer
                else applied(OPENING, 0, notes)
            )
            self.opening = False
        for entry in self.taken:
            for control in entry.taken.receipts:
                said = self.turn_notes.get(control, PromptNotes())
                said = notes if control == entry.taken.prompt else said
                receipts.append(applied(control, entry.step, said))
        self.taken.clear()
        self.turn_notes.clear()
        return receipts
