"""The server's link to one worker: a thread that reads, a thread that writes, nothing that blocks.

The reading thread starts the worker, copies frames out of the ring, hands everything to the event
loop in order, and stays until the worker has ended (a worker's death signal is tied to the thread
that started it).
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from typing import Protocol

from reverie.engine.emissions import FramesOut
from reverie.gpu_pool.server.worker_process import WorkerHost
from reverie.gpu_pool.wire.errors import ConnectionClosedError
from reverie.gpu_pool.wire.messages import (
    EmissionMessage,
    FramesInSlot,
    FreeSlot,
    FromWorker,
    LoadModel,
    ModelLoaded,
    ToWorker,
)
from reverie.gpu_pool.wire.ring import RingReader

logger = logging.getLogger(__name__)

_EXIT_LIMIT_S = 5.0
"""How long a worker may take to end once it has closed its connection."""


class LinkEnds(Protocol):
    """The listener of a link, on the event loop."""

    def received(self, link: "WorkerLink", message: FromWorker) -> None:
        """Take one message; frames come as `EmissionMessage(FramesOut)`, copied."""

    def ended(self, link: "WorkerLink", reason: str) -> None:
        """Learn that the worker has ended; nothing is received after this."""


class WorkerLink:
    """One worker's life, from its start to its end."""

    def __init__(self, name: str, host: WorkerHost, ends: LinkEnds, send_queue: int) -> None:
        """Prepare; must be called on the event loop.

        Args:
            send_queue: messages that may wait to be sent; a worker that lets more of them wait
                does not read, and is killed.
        """
        self.host = host
        self._name = name
        self._ends = ends
        self._loop = asyncio.get_running_loop()
        self._send_queue = send_queue
        self._unsent: list[ToWorker] = []
        self._sent = 0
        self._changed = threading.Condition()
        self._over = False
        self._ring: RingReader | None = None

    @property
    def sent(self) -> int:
        """Messages that the worker is to take, those that wait here included."""
        with self._changed:
            return self._sent

    def start(self, load: LoadModel) -> None:
        """Start the worker and both threads."""
        self.send(load)
        threading.Thread(target=self._read, name=f"{self._name}-reader", daemon=True).start()

    def send(self, *messages: ToWorker) -> None:
        """Send soon, in order, together; never blocks. To an ended worker it means nothing."""
        with self._changed:
            if self._over:
                return
            self._unsent.extend(messages)
            self._sent += len(messages)
            overflow = len(self._unsent) > self._send_queue
            self._changed.notify()
        if overflow:
            logger.error("worker %s does not read its messages", self._name)
            self.kill()

    def kill(self) -> None:
        """End the worker as soon as can be; `ended` is called when it has."""
        self.host.kill()

    def _read(self) -> None:
        reason = ""
        writer = threading.Thread(target=self._write, name=f"{self._name}-writer", daemon=True)
        try:
            self.host.start()
            writer.start()
            while True:
                for message in self.host.connection.receive():
                    self._post(self._ends.received, self._copied(message))
        except ConnectionClosedError:
            pass
        except Exception as error:
            # The process boundary: a message that cannot be read ends the worker, not the server.
            logger.exception("reading from worker %s failed", self._name)
            reason = f"{type(error).__name__}: {error}"
        finally:
            self._stop_writing()
            reason = reason or self.host.wait(_EXIT_LIMIT_S) or "the connection was lost"
            self.host.kill()
            self.host.wait(None)
            self.host.close()
            self._post(self._ends.ended, reason)

    def _copied(self, message: FromWorker) -> FromWorker:
        match message:
            case ModelLoaded():
                self._ring = RingReader(self.host.ring, message.ring)
            case FramesInSlot():
                assert self._ring is not None, "frames come after Loaded"
                frames = self._ring.copy(message.slot, message.shape)
                self.send(FreeSlot(message.slot))
                return EmissionMessage(FramesOut(message.header, frames))
            case _:
                pass
        return message

    def _write(self) -> None:
        with contextlib.suppress(ConnectionClosedError):
            while messages := self._take():
                self.host.connection.send(*messages)

    def _take(self) -> list[ToWorker]:
        """Wait for messages; none when the worker has ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._unsent or self._over)
            messages, self._unsent = self._unsent, []
            return [] if self._over else messages

    def _stop_writing(self) -> None:
        with self._changed:
            self._over = True
            self._changed.notify()

    def _post(self, what: Callable[..., None], argument: object) -> None:
        # On a closed event loop there is no listener left to call.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(what, self, argument)
