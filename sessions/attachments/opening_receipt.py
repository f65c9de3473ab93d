"""The receipt of the prompt that a session was opened with, for whoever drives first.

It says which words the model did not know. The session is opened by a request of its own, before
anybody is attached, so the receipt waits for the first driver.
"""

from reverie.engine import emissions
from reverie.engine.inputs import OPENING
from reverie.sessions.attachments.attachment import Attachment, Role
from reverie.sessions.backend.control_receipts import ControlReceipts
from reverie.sessions.protocol.events import ControlApplied, ControlSuperseded


class OpeningReceipt:
    """Given once, to one driver."""

    def __init__(self, receipts: ControlReceipts) -> None:
        self._receipts = receipts
        self._waiting: ControlApplied | ControlSuperseded | None = None

    def settle(
        self,
        told: emissions.ControlApplied | emissions.ControlSuperseded,
        driver: Attachment | None,
    ) -> None:
        """Note what became of it, and tell who drives now, if anybody does."""
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
        """Give it to somebody who has just come, if they drive and it waits."""
        if self._waiting is not None and attachment.role is Role.DRIVER:
            attachment.outbox.put(self._waiting)
            self._waiting = None
