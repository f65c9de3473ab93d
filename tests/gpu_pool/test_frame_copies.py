"""The pixels of a frame are copied twice on their way from the kernel to an encoder."""

import asyncio

import numpy as np
import pytest
from loop_rig import stub_rig
from pool_rig import Viewer, running
from stub_model import StubFamily, stub_request

from reverie.engine.emissions import Frames, FramesOut
from reverie.gpu_pool.wire.ring import RingReader, RingWriter, layout_for
from reverie.gpu_pool.wire.shared_memory import SharedMemory
from reverie.media import Codec, FrameTag, Size, VideoFanout
from reverie.media.types import EncodedFrame, MediaFrame, Picture
from reverie.media.video.rgb24 import Rgb24Encoder


class InputLogEncoder(Rgb24Encoder):
    """Keeps the pictures that it is given."""

    def __init__(self, size: Size, seen: list[Picture]) -> None:
        super().__init__(size)
        self._seen = seen

    def encode(self, frame_HWC: Picture, pts_us: int, force_key: bool) -> EncodedFrame:
        self._seen.append(frame_HWC)
        return super().encode(frame_HWC, pts_us, force_key)


async def encoder_input(frame: Picture) -> Picture:
    """Return what an encoder gets when a frame is published."""
    seen: list[Picture] = []
    fanout = VideoFanout(20.0, open_encoder=lambda _, size, __: InputLogEncoder(size, seen))
    delivered: list[MediaFrame] = []
    fanout.subscribe(Codec.RGB24, delivered.append)
    async with asyncio.TaskGroup() as group:
        group.create_task(fanout.run())
        fanout.publish(frame, FrameTag(0, 50_000, chunk=0, frame=0, last=True, step=0))
        await fanout.drain()
        fanout.close()
    assert len(delivered) == 1
    return seen[0]


async def test_one_copy_enters_the_ring_and_one_leaves_it() -> None:
    memory, layout = SharedMemory.create(), layout_for(StubFamily(frames=2).spec, 3)
    writer, reader = RingWriter(memory, layout), RingReader(memory, layout)
    rig = stub_rig()
    rig.open(stub_request("s1"), frame_memory=writer.memory)
    [out] = rig.run_chunks("s1", 1)
    slot = writer.put(out.frames)
    assert slot is not None
    out.frames[0, 0, 0] = (1, 2, 3)  # the driver wrote into the slot itself
    height, width = out.frames.shape[1:3]
    received = reader.copy(slot, (2, height, width, 3))
    assert received[0, 0, 0].tolist() == [1, 2, 3]
    seen = await encoder_input(received[0])
    assert np.shares_memory(seen, received)
    out.frames[:] = 0
    assert received[0, 0, 0].tolist() == [1, 2, 3], "the slot may be used again"


async def test_a_worker_sends_what_its_drivers_wrote_without_copying_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copied: list[bool] = []
    put = RingWriter.put

    def watched(ring: RingWriter, frames: Frames) -> int | None:
        free = ring.free
        slot = put(ring, frames)
        copied.append(ring.free != free)
        return slot

    monkeypatch.setattr(RingWriter, "put", watched)
    async with running("inline") as pool:
        viewer = Viewer("a")
        async with viewer.watching(pool):
            out = await viewer.hears(FramesOut, 5)
    assert copied
    assert not any(copied)
    assert not out.frames.flags.writeable
