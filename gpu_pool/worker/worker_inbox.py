"""The worker's way in: a thread that reads, so that the step thread finds everything at once."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from reverie.gpu_pool.wire.connection import Connection
from reverie.gpu_pool.wire.errors import ConnectionClosedError
from reverie.gpu_pool.wire.messages import FromWorker, Shutdown, ToWorker


@dataclass(slots=True)
class WorkerInbox:
    """Messages in order. Bounded by the sender, which keeps count of what it has not sent.

    Attributes:
        on_lost: called by the reading thread when the server is gone.
    """

    connection: Connection[FromWorker, ToWorker]
    on_lost: Callable[[], None] | None = None
    _messages: list[ToWorker] = field(default_factory=list)
    _woken: bool = False
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def start(self) -> None:
        """Begin to read."""
        threading.Thread(target=self._read, name="inbox", daemon=True).start()

    def take(self, *, wait: bool, limit_s: float | None = None) -> list[ToWorker]:
        """Return all messages that are there.

        Args:
            wait: wait until there is one, a thread calls `wake`, or a limit has passed.
            limit_s: that limit; None waits for as long as it takes.
        """
        with self._changed:
            if wait:
                self._changed.wait_for(lambda: self._messages or self._woken, limit_s)
            messages, self._messages = self._messages, []
            self._woken = False
            return messages

    def wake(self) -> None:
        """End a `take` that waits, or the next one that would; may be called by any thread."""
        with self._changed:
            self._woken = True
            self._changed.notify()

    def _read(self) -> None:
        try:
            while True:
                self._add(self.connection.receive())
        except ConnectionClosedError:
            if self.on_lost:
                self.on_lost()
        finally:
            self._add((Shutdown(),))

    def _add(self, messages: tuple[ToWorker, ...]) -> None:
        with self._changed:
            self._messages.extend(messages)
            self._changed.notify()
