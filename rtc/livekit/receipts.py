"""What became of controls, for whoever in this program wants to wait for it."""

import asyncio
from collections import OrderedDict

from reverie.sessions.protocol.events import ControlApplied, ControlSuperseded

REMEMBERED = 256

Receipt = ControlApplied | ControlSuperseded


class ReceiptWaiters:
    """The newest receipts. Any task may wait for one."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Receipt] = OrderedDict()
        self._publisher = asyncio.Event()

    def note(self, receipt: Receipt) -> None:
        """Keep a receipt; the oldest gives way."""
        self._known[receipt.control] = receipt
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        publisher, self._publisher = self._publisher, asyncio.Event()
        publisher.set()

    async def of(self, control: str, limit_s: float) -> Receipt | None:
        """Return the receipt of a control; None when it does not come in time."""
        try:
            async with asyncio.timeout(limit_s):
                while control not in self._known:
                    await self._publisher.wait()
        except TimeoutError:
            return None
        return self._known[control]
