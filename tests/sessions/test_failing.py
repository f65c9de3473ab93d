"""Steps, workers and encoders that fail: told by a typed reason, alone."""

from fake_pool import FRAMES
from session_rig import assert_well_formed, session_rig

from reverie.gpu_pool.notices import Recovered, WorkerLost
from reverie.media import Codec, EncodedFrame, EncodeError, Picture, Size, VideoEncoder, VideoFanout
from reverie.media.rgb24 import Rgb24Encoder
from reverie.sessions.events import (
    ControlSuperseded,
    Error,
    RequestAccepted,
)
from reverie.sessions.state import Phase


async def test_a_failing_step_is_told_and_the_session_lives() -> None:
    async with session_rig() as rig:
        session, lease, person = await rig.driven()
        lease.fail_step(fatal=False)
        error = await person.until("error")
        assert isinstance(error, Error)
        assert (error.code, error.chunk, error.command) == ("non_finite", 0, None)
        lease.put_out_chunk()
        assert await person.chunk()
        assert session.state.steps_failed == 1


async def test_a_lost_worker_is_told_and_the_session_goes_on() -> None:
    async with session_rig() as rig:
        session, lease, person = await rig.driven()
        lease.put_out_chunk()
        await person.chunk()
        lease.say(WorkerLost(session.id, "killed"))
        await person.until("session.recovering")
        lease.say(Recovered(session.id, 0, lease.pts_us))
        lease.put_out_chunk()
        assert await person.chunk()
        assert_well_formed(person)


async def test_controls_that_wait_at_the_end_get_their_receipt() -> None:
    async with session_rig() as rig:
        session, _, person = await rig.driven()
        answer = await person.ask("push_text", text="never seen")
        session.end("closed")
        await person.until_end()
        receipts = [event for event in person.events if isinstance(event, ControlSuperseded)]
        assert isinstance(answer, RequestAccepted)
        assert [(each.control, each.by) for each in receipts] == [(answer.command, None)]


class BrokenEncoder:
    """Encodes some frames and then no more."""

    def __init__(self, size: Size, frames: int) -> None:
        self._inner = Rgb24Encoder(size)
        self._left = frames

    def encode(self, frame_HWC: Picture, pts_us: int, force_key: bool) -> EncodedFrame:
        if not self._left:
            raise EncodeError("out of order")
        self._left -= 1
        return self._inner.encode(frame_HWC, pts_us, force_key)

    def close(self) -> None:
        self._inner.close()


def breaking_fanout(rate_hz: float) -> VideoFanout:
    def open_encoder(codec: Codec, size: Size, rate_hz: float) -> VideoEncoder:
        return BrokenEncoder(size, frames=FRAMES + 1)

    return VideoFanout(rate_hz, open_encoder=open_encoder)


async def test_an_encoder_that_fails_ends_the_session_with_a_typed_reason() -> None:
    async with session_rig(open_fanout=breaking_fanout) as rig:
        session, lease, person = await rig.driven()
        lease.put_out_chunk()
        await person.chunk()
        lease.put_out_chunk()
        assert await person.until_end() == "encode_failed"
        assert_well_formed(person)
        assert person.types()[-2:] == ["media.complete", "session.closed"]
        await session.gone()
        assert session.state.phase is Phase.FAILED
