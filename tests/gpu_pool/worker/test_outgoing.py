import numpy as np
import pytest

from reverie.engine.emissions import FramesHeader, FramesOut, TextOut
from reverie.gpu_pool.wire.connection import QueueConnection, queue_pair
from reverie.gpu_pool.wire.messages import (
    EmissionMessage,
    FramesInSlot,
    FromWorker,
    RequestDone,
    ToWorker,
)
from reverie.gpu_pool.wire.ring import RingLayout, RingReader, RingWriter
from reverie.gpu_pool.wire.shared_memory import SharedMemory
from reverie.gpu_pool.worker.outgoing import OutgoingMessages

FRAME_BYTES = 4 * 4 * 3


class OutgoingRig:
    """A worker's way out over two slots of two frames, and the server's end of it."""

    def __init__(self) -> None:
        memory, layout = SharedMemory.create(), RingLayout(2, 2 * FRAME_BYTES)
        self.ring = RingWriter(memory, layout)
        self.reader = RingReader(memory, layout)
        pair: tuple[
            QueueConnection[FromWorker, ToWorker], QueueConnection[ToWorker, FromWorker]
        ] = queue_pair()
        self.outgoing = OutgoingMessages(pair[0], self.ring)
        self.server = pair[1]

    def received(self) -> tuple[FromWorker, ...]:
        return self.server.receive()


@pytest.fixture
def rig() -> OutgoingRig:
    return OutgoingRig()


def frames(chunk: int, count: int = 2, discontinuity: bool = False) -> FramesOut:
    pixels = np.full((count, 4, 4, 3), chunk, np.uint8)
    return FramesOut(FramesHeader("s", "video", chunk, 0, 1000 * chunk, 10, discontinuity), pixels)


def test_everything_leaves_in_the_order_in_which_it_happened(rig: OutgoingRig) -> None:
    text = TextOut("s", "text", 1, 0, "hello")
    rig.outgoing.emit([frames(1), text])
    rig.outgoing.answer(RequestDone(1, "s"))
    rig.outgoing.flush()
    slot, *rest = rig.received()
    assert isinstance(slot, FramesInSlot)
    assert rest == [EmissionMessage(text), RequestDone(1, "s")]
    assert (rig.reader.copy(slot.slot, slot.shape) == 1).all()


def test_frames_without_a_slot_wait_and_so_does_everything_behind_them(rig: OutgoingRig) -> None:
    rig.outgoing.emit([frames(1), frames(2), frames(3)])
    rig.outgoing.answer(RequestDone(1, "s"))
    rig.outgoing.flush()
    first, second = rig.received()
    assert isinstance(first, FramesInSlot)
    assert isinstance(second, FramesInSlot)
    assert rig.outgoing.blocked
    rig.ring.release(first.slot)
    rig.outgoing.flush()
    third, done = rig.received()
    assert isinstance(third, FramesInSlot)
    assert (third.header.chunk, done) == (3, RequestDone(1, "s"))
    assert not rig.outgoing.blocked


def test_more_frames_than_a_slot_holds_leave_in_pieces(rig: OutgoingRig) -> None:
    rig.outgoing.emit([frames(1, count=3, discontinuity=True)])
    rig.outgoing.flush()
    one, other = rig.received()
    assert isinstance(one, FramesInSlot)
    assert isinstance(other, FramesInSlot)
    assert (one.shape[0], one.header.pts_us, one.header.discontinuity) == (2, 1000, True)
    assert (other.shape[0], other.header.pts_us, other.header.discontinuity) == (1, 1020, False)
