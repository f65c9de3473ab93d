import numpy as np
import pytest
import stub_model

from reverie.engine.emissions import Frames
from reverie.gpu_pool.wire.ring import RingLayout, RingReader, RingWriter, layout_for
from reverie.gpu_pool.wire.shared_memory import SharedMemory


def frames(value: int, count: int = 2) -> Frames:
    return np.full((count, 4, 4, 3), value, np.uint8)


def ring(slots: int = 2) -> tuple[RingWriter, RingReader]:
    memory = SharedMemory.create()
    layout = RingLayout(slots, slot_bytes=2 * 4 * 4 * 3)
    writer = RingWriter(memory.duplicate(), layout)
    return writer, RingReader(memory, layout)


def test_frames_come_out_as_they_went_in() -> None:
    writer, reader = ring()
    pattern = np.random.default_rng(1).integers(0, 255, (2, 4, 4, 3), dtype=np.uint8)
    slot = writer.put(pattern)
    assert slot is not None
    assert np.array_equal(reader.copy(slot, (2, 4, 4, 3)), pattern)


def test_frames_that_are_no_contiguous_array_come_out_as_well() -> None:
    writer, reader = ring()
    pattern = np.arange(96, dtype=np.uint8).reshape(2, 4, 4, 3)[:, ::-1, ::-1]
    slot = writer.put(pattern)
    assert slot is not None
    assert np.array_equal(reader.copy(slot, (2, 4, 4, 3)), pattern)


def test_a_copy_does_not_change_when_its_slot_is_used_again() -> None:
    writer, reader = ring(slots=1)
    slot = writer.put(frames(1))
    assert slot is not None
    copy = reader.copy(slot, (2, 4, 4, 3))
    writer.release(slot)
    assert writer.put(frames(2)) == slot
    assert (copy == 1).all()


def test_a_full_ring_takes_nothing_and_overwrites_nothing() -> None:
    writer, reader = ring()
    slots = [writer.put(frames(1)), writer.put(frames(2))]
    assert writer.put(frames(3)) is None
    assert writer.free == 0
    for slot, value in zip(slots, (1, 2), strict=True):
        assert slot is not None
        assert (reader.copy(slot, (2, 4, 4, 3)) == value).all()


def test_only_a_slot_that_is_taken_can_be_released() -> None:
    writer, _ = ring()
    slot = writer.put(frames(1))
    assert slot is not None
    writer.release(slot)
    for wrong in (slot, 99, -1):
        with pytest.raises(ValueError, match="not taken"):
            writer.release(wrong)
    assert writer.free == 2


def test_frames_larger_than_a_slot_are_refused() -> None:
    writer, _ = ring()
    with pytest.raises(ValueError, match="do not fit"):
        writer.put(frames(1, count=3))
    assert writer.frames_a_slot(frames(1, count=3)) == 2
    with pytest.raises(ValueError, match="does not fit"):
        writer.frames_a_slot(np.zeros((1, 64, 64, 3), np.uint8))


@pytest.mark.parametrize("slot", [-1, 2])
def test_a_slot_that_does_not_exist_cannot_be_read(slot: int) -> None:
    _, reader = ring()
    with pytest.raises(ValueError, match="no frames"):
        reader.copy(slot, (2, 4, 4, 3))


def test_a_shape_larger_than_a_slot_cannot_be_read() -> None:
    _, reader = ring()
    with pytest.raises(ValueError, match="no frames"):
        reader.copy(0, (3, 4, 4, 3))


def test_a_reader_refuses_memory_that_is_too_small() -> None:
    memory = SharedMemory.create()
    memory.resize(10)
    with pytest.raises(ValueError, match="expected"):
        RingReader(memory, RingLayout(1, 11))


def test_a_slot_holds_one_chunk_of_the_model() -> None:
    assert layout_for(stub_model.StubFamily(frames=5).spec, 3) == RingLayout(3, 5 * 64 * 64 * 3)


def test_frames_that_were_written_into_a_slot_are_not_copied_into_one() -> None:
    writer, reader = ring(slots=3)
    written = writer.memory((2, 4, 4, 3))
    written[:] = 7
    assert writer.free == 2
    slot = writer.put(written)
    assert slot is not None
    assert writer.free == 2
    written[:] = 8  # it is the slot itself
    assert (reader.copy(slot, (2, 4, 4, 3)) == 8).all()
    writer.release(slot)
    del written
    assert writer.free == 3


def test_frames_that_are_dropped_before_they_are_sent_give_their_slot_back() -> None:
    writer, _ = ring(slots=3)
    written = writer.memory((2, 4, 4, 3))
    part = written[1:]
    del written
    assert writer.free == 2, "a part of it is still there"
    del part
    assert writer.free == 3


def test_a_slot_that_is_lent_again_is_not_taken_back_for_the_frames_it_held_before() -> None:
    writer, _ = ring(slots=2)
    first = writer.memory((2, 4, 4, 3))
    slot = writer.put(first)
    assert slot is not None
    writer.release(slot)
    second = writer.memory((2, 4, 4, 3))
    del first
    assert writer.free == 1
    assert writer.put(second) == slot


def test_the_last_slot_is_kept_for_frames_that_wait_in_other_memory() -> None:
    writer, reader = ring(slots=2)
    lent, other = writer.memory((2, 4, 4, 3)), writer.memory((2, 4, 4, 3))
    other[:] = 9
    slot = writer.put(other)
    assert slot is not None
    assert (reader.copy(slot, (2, 4, 4, 3)) == 9).all()
    assert writer.put(lent) not in (None, slot)


def test_frames_that_no_slot_can_hold_get_other_memory() -> None:
    writer, _ = ring(slots=3)
    assert writer.memory((3, 4, 4, 3)).shape == (3, 4, 4, 3)
    assert writer.free == 3
