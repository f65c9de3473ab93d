"""The worker's way out: messages in order, frames through the ring.

When no slot is free the frames wait here, and everything behind them; the worker then runs no more
units, so that what waits stays small.
"""

from collections import deque
from collections.abc import Iterable, Iterator

from reverie.engine.emissions import Emission, FramesOut
from reverie.gpu_pool.wire.connection import Connection
from reverie.gpu_pool.wire.messages import EmissionMessage, FramesInSlot, FromWorker, ToWorker
from reverie.gpu_pool.wire.ring import RingWriter


class OutgoingMessages:
    """An ordered way to the server. Used by the step thread only."""

    def __init__(self, connection: Connection[FromWorker, ToWorker], ring: RingWriter) -> None:
        self._connection = connection
        self._ring = ring
        self._waiting: deque[FromWorker | FramesOut] = deque()

    @property
    def blocked(self) -> bool:
        """Whether frames wait for a slot."""
        return bool(self._waiting)

    def answer(self, message: FromWorker) -> None:
        """Add a message behind everything that was emitted before it."""
        self._waiting.append(message)

    def emit(self, emissions: Iterable[Emission]) -> None:
        """Add what a driver emitted."""
        for emission in emissions:
            if isinstance(emission, FramesOut):
                self._waiting.extend(self._pieces(emission))
            else:
                self._waiting.append(EmissionMessage(emission))

    def flush(self) -> None:
        """Send what can be sent.

        Raises:
            ConnectionClosedError: the server is gone.
        """
        ready: list[FromWorker] = []
        while self._waiting:
            message = self._waiting[0]
            if isinstance(message, FramesOut):
                placed = self._place(message)
                if placed is None:
                    break
                message = placed
            self._waiting.popleft()
            ready.append(message)
        if ready:
            self._connection.send(*ready)

    def _place(self, out: FramesOut) -> FramesInSlot | None:
        slot = self._ring.put(out.frames)
        if slot is None:
            return None
        frames, height, width, channels = out.frames.shape
        return FramesInSlot(out.header, slot, (frames, height, width, channels))

    def _pieces(self, out: FramesOut) -> Iterator[FramesOut]:
        """Cut frames that a slot cannot hold; a chunk is no larger, so this is rare."""
        step = self._ring.frames_a_slot(out.frames)
        for start in range(0, len(out.frames), step):
            yield FramesOut(out.header.after(start), out.frames[start : start + step])
