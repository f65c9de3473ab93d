"""The clients that are attached to a session: at most one driver, and some viewers."""

from collections.abc import Callable, Iterator

from reverie.engine import emissions
from reverie.engine.inputs import OPENING
from reverie.sessions.attachments.attachment import Attachment, Role
from reverie.sessions.backend.control_receipts import ControlReceipts
from reverie.sessions.protocol.commands import AnyCommand
from reverie.sessions.protocol.events import AnyEvent, ControlApplied, ControlSuperseded

Overhear = Callable[[AnyEvent | AnyCommand], None]


class AttachedClients:
    """The attachments of one session, in the order in which they came."""

    def __init__(self) -> None:
        self._attached: dict[int, Attachment] = {}
        self._overhear: Overhear | None = None

    def __len__(self) -> int:
        return len(self._attached)

    def __iter__(self) -> Iterator[Attachment]:
        return iter(tuple(self._attached.values()))

    def __contains__(self, attachment: Attachment) -> bool:
        return self._attached.get(attachment.key) is attachment

    @property
    def driver(self) -> Attachment | None:
        """The attachment that may give commands, if there is one."""
        return next((each for each in self if each.role is Role.DRIVER), None)

    @property
    def listening(self) -> bool:
        """Whether any attachment takes events."""
        return any(each.listening for each in self)

    def add(self, attachment: Attachment) -> None:
        """Add an attachment."""
        self._attached[attachment.key] = attachment

    def remove(self, attachment: Attachment) -> None:
        """Remove an attachment, which must be there."""
        del self._attached[attachment.key]

    def tell(self, event: AnyEvent) -> None:
        """Put an event into every outbox."""
        self.overheard(event)
        for attachment in self:
            attachment.outbox.put(event)

    def overhear(self, call: Overhear | None) -> None:
        """Have a recording hear every command and event too; None: no longer."""
        self._overhear = call

    def overheard(self, said: AnyEvent | AnyCommand) -> None:
        """Pass on to the recording what only one of them has sent or received."""
        if self._overhear is not None:
            self._overhear(said)


class OpeningReceipt:
    """The receipt of the prompt that a session was opened with, for its first driver.

    It says which words the model did not know. A request opens the session before any client is
    attached, so the receipt waits for the first driver, and is given once.
    """

    def __init__(self, receipts: ControlReceipts) -> None:
        self._receipts = receipts
        self._waiting: ControlApplied | ControlSuperseded | None = None

    def settle(
        self,
        told: emissions.ControlApplied | emissions.ControlSuperseded,
        driver: Attachment | None,
    ) -> None:
        """Note what became of the prompt, and tell the present driver, if there is one."""
        if isinstance(told, emissions.ControlApplied):
            self._waiting = ControlApplied(
                control=OPENING,
                step=told.step,
                chunk=told.chunk,
                pts_us=told.pts_us,
                unknown_words=told.unknown_words,
                truncated_at=told.truncated_at,
            )
        else:
            by = self._receipts.command_of(told.by)
            self._waiting = ControlSuperseded(control=OPENING, by=by)
        if driver is not None:
            self.tell(driver)

    def tell(self, attachment: Attachment) -> None:
        """Give the receipt to a client that has just attached, if that client drives."""
        if self._waiting is not None and attachment.role is Role.DRIVER:
            attachment.outbox.put(self._waiting)
            self._waiting = None
