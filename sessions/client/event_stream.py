"""The events of a session, as an async iterator."""

from collections.abc import Awaitable, Callable
from typing import Self

from reverie.sessions.protocol.errors import AttachmentEndedError
from reverie.sessions.protocol.events import AnyEvent


class EventStream:
    """Events, one after the other, until the session or the attachment ends.

    `anext` is safe to cancel, so it can be used under a timeout: the event stays for the next call.
    Leaving a loop by `break` stops the stream with its last reference; `aclose` stops it at once.
    """

    def __init__(
        self,
        take: Callable[[], Awaitable[AnyEvent]],
        *,
        shown: Callable[[AnyEvent], None],
        back: Callable[[], None],
        left: Callable[[], None],
    ) -> None:
        """Made by `Session.stream`.

        Args:
            take: waits for the next event; raises `AttachmentEndedError` after the last.
            shown: called with each event just before it is returned.
            back: called when the consumer asks for the next.
            left: called once, when nothing more will be taken.
        """
        self._take = take
        self._shown = shown
        self._back = back
        self._left = left
        self._open = True

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AnyEvent:
        if not self._open:
            raise StopAsyncIteration
        self._back()
        try:
            event = await self._take()
        except AttachmentEndedError:
            self.close()
            raise StopAsyncIteration from None
        self._shown(event)
        return event

    def close(self) -> None:
        """Take nothing more; idempotent."""
        if self._open:
            self._open = False
            self._left()

    async def aclose(self) -> None:
        """Take nothing more, for `contextlib.aclosing`."""
        self.close()

    def __del__(self) -> None:
        self.close()
