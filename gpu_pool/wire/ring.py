"""Frames on their way from a worker to the server: equal slots in shared memory.

The worker owns the free list. It puts frames into a free slot and says so in a message; the server
copies them out and sends `FreeSlot`. When no slot is free the worker waits: frames are never
dropped here.
"""

from dataclasses import dataclass
from math import prod

import numpy as np

from reverie.engine.emissions import Frames
from reverie.gpu_pool.wire.shared_memory import SharedMemory
from reverie.models.contract.spec import ModelSpec, StreamKind

Shape = tuple[int, int, int, int]
"""Of a block of frames: [F, H, W, 3]."""


@dataclass(frozen=True, slots=True)
class RingLayout:
    """How the memory is cut into slots."""

    slots: int
    slot_bytes: int

    @property
    def size_bytes(self) -> int:
        """Size of the whole ring."""
        return self.slots * self.slot_bytes


def layout_for(spec: ModelSpec, slots: int) -> RingLayout:
    """Return a layout whose slots hold one chunk of the largest stream of any loop.

    A chunk that shows what was pushed may have as many frames as waited.
    """
    sizes = [
        max(loop.chunk_frames, sum(given.capacity for given in loop.inputs))
        * stream.width
        * stream.height
        * 3
        for loop in spec.loops
        for stream in loop.streams
        if stream.kind is StreamKind.VIDEO
    ]
    return RingLayout(slots, max(sizes, default=1))


class RingWriter:
    """The worker's end. Used by the step thread only."""

    def __init__(self, memory: SharedMemory, layout: RingLayout) -> None:
        """Give the shared memory its size.

        Raises:
            OSError: there is not so much memory.
        """
        memory.resize(layout.size_bytes)
        self.layout = layout
        self._map = memory.map()
        self._free = list(reversed(range(layout.slots)))
        self._taken: set[int] = set()

    @property
    def free(self) -> int:
        """How many slots are free."""
        return len(self._free)

    def frames_a_slot(self, frames: Frames) -> int:
        """Return how many of these frames fit into a slot.

        Raises:
            ValueError: not even one does.
        """
        count = self.layout.slot_bytes // prod(frames.shape[1:])
        if not count:
            raise ValueError(f"a frame of {frames.shape[1:]} does not fit into a slot")
        return count

    def put(self, frames: Frames) -> int | None:
        """Copy frames into a free slot and return it; None when no slot is free."""
        if frames.nbytes > self.layout.slot_bytes:
            raise ValueError(f"{frames.nbytes} bytes do not fit into a slot")
        if not self._free:
            return None
        slot = self._free.pop()
        self._taken.add(slot)
        start = slot * self.layout.slot_bytes
        target = np.frombuffer(self._map, np.uint8, frames.nbytes, start)
        np.copyto(target.reshape(frames.shape), frames)
        return slot

    def release(self, slot: int) -> None:
        """Take back a slot that the server has copied.

        Raises:
            ValueError: it was not taken.
        """
        if slot not in self._taken:
            raise ValueError(f"slot {slot} was not taken")
        self._taken.remove(slot)
        self._free.append(slot)


class RingReader:
    """The server's end. Used by the reading thread of one worker only."""

    def __init__(self, memory: SharedMemory, layout: RingLayout) -> None:
        """Map what the worker has laid out.

        Raises:
            ValueError: the memory is smaller than the layout says.
        """
        self._layout = layout
        self._map = memory.map()
        if len(self._map) < layout.size_bytes:
            raise ValueError(f"ring of {len(self._map)} bytes, {layout.size_bytes} expected")

    def copy(self, slot: int, shape: Shape) -> Frames:
        """Return a copy of the frames in `slot`; it may be freed afterwards.

        Raises:
            ValueError: there is no such slot, or the shape is larger than a slot.
        """
        size = prod(shape)
        if not 0 <= slot < self._layout.slots or not 0 <= size <= self._layout.slot_bytes:
            raise ValueError(f"no frames of {shape} in slot {slot}")
        source = np.frombuffer(self._map, np.uint8, size, slot * self._layout.slot_bytes)
        return source.reshape(shape).copy()
