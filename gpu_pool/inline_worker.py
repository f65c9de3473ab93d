"""A worker on a thread of the server's own process, for tests, notebooks and debugging.

The same worker, messages and ring. What a thread cannot do: it cannot be killed. When it hangs, its
sessions are told so at once, and its successor starts only when it has come to its end, so that two
never work on one device at the same time.
"""

import logging
import threading

from reverie.gpu_pool.wire.connection import Connection, QueueConnection, queue_pair
from reverie.gpu_pool.wire.errors import ConnectionClosedError
from reverie.gpu_pool.wire.heartbeat import Heartbeat
from reverie.gpu_pool.wire.messages import FromWorker, ToWorker
from reverie.gpu_pool.wire.shared_memory import SharedMemory

logger = logging.getLogger(__name__)


class InlineHost:
    """A worker on a thread."""

    def __init__(self, name: str) -> None:
        """Prepare everything but the thread."""
        self.ring = SharedMemory.create()
        beats = SharedMemory.create()
        Heartbeat.prepare(beats)
        self.heartbeat = Heartbeat(beats)
        beats.close()
        pair: tuple[
            QueueConnection[ToWorker, FromWorker], QueueConnection[FromWorker, ToWorker]
        ] = queue_pair()
        self.connection: Connection[ToWorker, FromWorker] = pair[0]
        self._theirs = pair[1]
        self._failure = "left"
        # A daemon, or a step that hangs would keep the interpreter from ending.
        self._thread = threading.Thread(target=self._run, name=f"worker-{name}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def kill(self) -> None:
        """End the connection: the thread leaves when its step has ended."""
        self.connection.close()

    def wait(self, limit_s: float | None) -> str | None:
        """Wait for the thread; see `WorkerHost`."""
        self._thread.join(limit_s)
        return None if self._thread.is_alive() else self._failure

    def ended_by_others(self) -> bool:
        """Say that nothing outside can end a thread; see `WorkerHost`."""
        return False

    def close(self) -> None:
        """Close what is shared; see `WorkerHost`."""
        self.connection.close()
        self.ring.close()

    def _run(self) -> None:
        from reverie.gpu_pool.worker.worker import Worker  # brings torch; most servers need none

        ring = self.ring.duplicate()
        worker = Worker(self._theirs, ring, self.heartbeat)
        try:
            worker.run()
        except ConnectionClosedError:
            self._failure = "the connection was closed"
        except Exception as error:
            # The process boundary of this mode: what would have ended the process ends the thread.
            logger.exception("the worker has failed")
            self._failure = f"{type(error).__name__}: {error}"
        finally:
            ring.close()
            self._theirs.close()
