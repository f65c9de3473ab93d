"""Frames on their way from a worker to the server: equal slots in shared memory.

The worker owns the free list. A driver writes its frames straight into a free slot (`memory`), and
the worker says so in a message; the server copies them out and sends `FreeSlot`. So the pixels are
copied twice on their way to an encoder. When no slot is free, frames wait in other memory and are
copied once more: frames are never dropped here.
"""

import weakref
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
        self._start = _address(np.frombuffer(self._map, np.uint8))
        self._free = list(reversed(range(layout.slots)))
        self._lent: dict[int, weakref.finalize[[int], Frames]] = {}  # written, and not yet sent
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

    def memory(self, shape: tuple[int, ...]) -> Frames:
        """Return memory for frames: a slot, or other memory where none can be spared.

        `put` sends the slot without a copy. Frames that are dropped before give it back.
        """
        size = prod(shape)
        # The last slot is kept for frames that wait in other memory: those in slots may be behind
        # them, and could then not leave.
        if size > self.layout.slot_bytes or len(self._free) < 2:
            return np.empty(shape, np.uint8)
        slot = self._free.pop()
        flat = self._view(slot, size)
        self._lent[slot] = weakref.finalize(flat, self._give_back, slot)
        self._lent[slot].atexit = False
        return flat.reshape(shape)

    def put(self, frames: Frames) -> int | None:
        """Return a slot that holds the frames; None when no slot is free.

        They are copied, unless they lie in `memory` that is a slot; that one must not be written
        to afterwards.
        """
        if frames.nbytes > self.layout.slot_bytes:
            raise ValueError(f"{frames.nbytes} bytes do not fit into a slot")
        slot, rest = divmod(_address(frames) - self._start, self.layout.slot_bytes)
        if not rest and slot in self._lent:
            self._lent.pop(slot).detach()
        elif self._free:
            slot = self._free.pop()
            np.copyto(self._view(slot, frames.nbytes).reshape(frames.shape), frames)
        else:
            return None
        self._taken.add(slot)
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

    def _view(self, slot: int, size: int) -> Frames:
        return np.frombuffer(self._map, np.uint8, size, slot * self.layout.slot_bytes)

    def _give_back(self, slot: int) -> None:
        del self._lent[slot]
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
        """Return a copy of the frames in `slot`, which may be freed afterwards.

        It is read-only, so that it can be handed on as it is.

        Raises:
            ValueError: there is no such slot, or the shape is larger than a slot.
        """
        size = prod(shape)
        if not 0 <= slot < self._layout.slots or not 0 <= size <= self._layout.slot_bytes:
            raise ValueError(f"no frames of {shape} in slot {slot}")
        source = np.frombuffer(self._map, np.uint8, size, slot * self._layout.slot_bytes)
        frames = source.reshape(shape).copy()
        frames.flags.writeable = False
        return frames


def _address(frames: Frames) -> int:
    return int(frames.__array_interface__["data"][0])
