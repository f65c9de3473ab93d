"""One receipt for each control: when it took effect, or what took its place.

A command may set several controls in one step (a prompt and parameters); each has an internal id,
and the command gets its one receipt when all are settled, at the latest before the first frame that
shows any of them. Internal ids are never reused, so that two clients may use equal ids.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from reverie.engine import emissions
from reverie.engine.inputs import ControlId, ControlInput
from reverie.sessions.protocol.events import ControlApplied, ControlSuperseded

Receipt = ControlApplied | ControlSuperseded
Tell = Callable[[Receipt], None]
"""Delivers the receipt to the sender of the command, if it is still attached."""


@dataclass(slots=True, eq=False)
class _PendingControls:
    command: str
    tell: Tell
    waiting: dict[ControlId, ControlInput]
    applied: ControlApplied | None = None
    superseded_by: str | None = None


@dataclass(slots=True)
class ControlReceipts:
    """Every control that was sent and has no receipt yet. The caller of `open` bounds them."""

    _ids: "count[int]" = field(default_factory=count)
    _owners: dict[ControlId, _PendingControls] = field(default_factory=dict)
    _begun: list[_PendingControls] = field(default_factory=list)

    def __len__(self) -> int:
        """How many controls wait."""
        return len(self._owners)

    def new_id(self) -> ControlId:
        """Return an id that no control of this session has had."""
        return ControlId(f"{next(self._ids)}")

    def command_of(self, control: ControlId | None) -> str | None:
        """Return the command of a control that has no receipt yet; None for any other."""
        owner = None if control is None else self._owners.get(control)
        return owner.command if owner is not None else None

    def open(self, command: str, inputs: tuple[ControlInput, ...], tell: Tell) -> None:
        """Expect a receipt for `command`, which consists of `inputs`, one or more."""
        pending = _PendingControls(command, tell, {each.control: each for each in inputs})
        for each in inputs:
            self._owners[each.control] = pending

    def waiting(self) -> tuple[ControlInput, ...]:
        """Return every input without a receipt, oldest first: to be sent again after a loss."""
        return tuple(owner.waiting[control] for control, owner in self._owners.items())

    def applied(self, told: emissions.ControlApplied) -> None:
        """Note that a control acts. Unknown ids belong to controls that the session itself sent."""
        pending = self._settle(told.control)
        if pending is None:
            return
        earlier = pending.applied
        pending.applied = ControlApplied(
            control=pending.command,
            step=told.step,
            chunk=told.chunk,
            pts_us=told.pts_us,
            unknown_words=told.unknown_words or (earlier.unknown_words if earlier else ()),
            truncated_at=told.truncated_at or (earlier.truncated_at if earlier else None),
            dropped_messages=told.dropped_messages,
        )
        if earlier is None:
            self._begun.append(pending)
        self._tell_if_settled(pending)

    def superseded(self, told: emissions.ControlSuperseded) -> None:
        """Note that a control will never act."""
        by = self._owners.get(told.by) if told.by is not None else None
        pending = self._settle(told.control)
        if pending is not None:
            # A later part of the same command is not another command.
            pending.superseded_by = by.command if by and by is not pending else None
            self._tell_if_settled(pending)

    def waits(self, control: ControlId) -> ControlInput | None:
        """Return the input of a control that has no receipt yet; None for any other."""
        owner = self._owners.get(control)
        return owner.waiting.get(control) if owner is not None else None

    def before_frames(self) -> None:
        """Give the receipts of controls that act: the frames that show them come next."""
        begun, self._begun = self._begun, []
        for pending in begun:
            self._tell_applied(pending)

    def drop_all(self) -> None:
        """Give up every waiting control: none of them will act."""
        self.before_frames()
        dropped = dict.fromkeys(self._owners.values())
        self._owners.clear()
        for pending in dropped:
            pending.tell(ControlSuperseded(control=pending.command, by=None))

    def _settle(self, control: ControlId) -> _PendingControls | None:
        pending = self._owners.pop(control, None)
        if pending is not None:
            del pending.waiting[control]
        return pending

    def _tell_if_settled(self, pending: _PendingControls) -> None:
        if pending.waiting:
            return
        if pending in self._begun:
            self._begun.remove(pending)
        if pending.applied is not None:
            self._tell_applied(pending)
        else:
            told = ControlSuperseded(control=pending.command, by=pending.superseded_by)
            pending.tell(told)

    def _tell_applied(self, pending: _PendingControls) -> None:
        assert pending.applied is not None, "only an applied control has this receipt"
        pending.tell(pending.applied)
        for control in pending.waiting:
            self._owners.pop(control, None)
        pending.waiting.clear()
