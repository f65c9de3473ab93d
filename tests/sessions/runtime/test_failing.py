"""Steps, workers and encoders that fail: told by a typed reason, alone."""

import pytest
from fake_pool import FRAMES
from session_rig import assert_well_formed, session_rig

from reverie.engine.emissions import FaultCode, StepFailed
from reverie.gpu_pool.wire.errors import (
    LeaseEndedError,
    ModelUnavailableError,
    PoolError,
    RequestRefusedError,
    WorkerLostError,
)
from reverie.gpu_pool.wire.messages import RequestDone
from reverie.gpu_pool.wire.notifications import SessionLost, SessionRecovered, WorkerLost
from reverie.gpu_pool.wire.session_messages import Request
from reverie.media import Codec, EncodedFrame, EncodeError, Picture, Size, VideoEncoder, VideoFanout
from reverie.media.video.rgb24 import Rgb24Encoder
from reverie.sessions.attachments.attachment import Role
from reverie.sessions.protocol.errors import SessionEndedError
from reverie.sessions.protocol.events import (
    ControlSuperseded,
    Error,
    RequestAccepted,
    SessionRecovering,
)
from reverie.sessions.state.session_phases import SessionPhase


async def test_a_failing_step_is_told_and_the_session_lives() -> None:
    async with session_rig() as rig:
        session, lease, client = await rig.driven()
        lease.fail_step(fatal=False)
        error = await client.until("error")
        assert isinstance(error, Error)
        assert (error.code, error.chunk, error.command) == ("non_finite", 0, None)
        lease.put_out_chunk()
        assert await client.chunk()
        assert session.state.steps_failed == 1


async def test_memory_that_ran_out_is_told_with_what_was_asked_for_and_what_there_is() -> None:
    async with session_rig() as rig:
        session, lease, client = await rig.driven()
        words = "out of memory on cuda:0: 2.0 GiB were requested, 1.5 GiB are free"
        code, loop = FaultCode.OUT_OF_MEMORY, "world_model"
        lease.say(StepFailed(session.id, code, 0, 0, words, fatal=False, loop=loop))
        error = await client.until("error")
        assert isinstance(error, Error)
        assert (error.code, error.message) == ("out_of_memory", f"the model ran {words}")
        lease.say(StepFailed(session.id, code, 0, 0, words, fatal=True, loop=loop))
        await session.ended()
        assert session.state.reason == "out_of_memory"


async def test_a_lost_worker_is_told_and_the_session_continues() -> None:
    async with session_rig() as rig:
        session, lease, client = await rig.driven()
        lease.put_out_chunk()
        await client.chunk()
        lease.say(WorkerLost(session.id, "killed"))
        await client.until("session.recovering")
        lease.say(SessionRecovered(session.id, 0, lease.pts_us))
        lease.put_out_chunk()
        assert await client.chunk()
        assert_well_formed(client)


async def test_a_client_that_attaches_during_recovery_is_told_so() -> None:
    async with session_rig() as rig:
        session, lease, client = await rig.driven()
        lease.put_out_chunk()
        await client.chunk()
        lease.say(WorkerLost(session.id, "killed"))
        for newcomer in (rig.attach(session), rig.attach(session, role=Role.VIEWER)):
            told = await newcomer.until("session.recovering")
            assert isinstance(told, SessionRecovering)
            assert (told.reason, told.chunk) == ("worker_lost", 0)
            assert newcomer.types()[:2] == ["session.attached", "session.recovering"]
        lease.say(SessionRecovered(session.id, 0, lease.pts_us))
        later = rig.attach(session)
        lease.put_out_chunk()
        await later.chunk()
        assert "session.recovering" not in later.types()


async def test_controls_that_wait_at_the_end_get_their_receipt() -> None:
    async with session_rig() as rig:
        session, _, client = await rig.driven()
        answer = await client.ask("push_text", text="never seen")
        session.end("closed")
        await client.until_end()
        receipts = [event for event in client.events if isinstance(event, ControlSuperseded)]
        assert isinstance(answer, RequestAccepted)
        assert [(each.control, each.by) for each in receipts] == [(answer.command, None)]


SECRET = "ValueError: secret /etc/passwd boom"


async def test_the_text_of_a_model_s_exception_is_not_told_to_clients() -> None:
    async with session_rig() as rig:
        session, lease, client = await rig.driven()
        lease.say(WorkerLost(session.id, SECRET))
        lease.say(SessionRecovered(session.id, -1, 0))
        for fatal in (False, True):
            lease.say(StepFailed(session.id, FaultCode.STEP_RAISED, 0, 0, SECRET, fatal))
        assert await client.until_end() == "step_raised"
        told = [event.model_dump_json() for event in client.events]
        assert not [text for text in told if "passwd" in text]
        assert sum("a step of the model failed (step_raised)" in text for text in told) == 3
        assert "passwd" not in session.message


async def test_why_a_session_was_given_up_is_for_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with session_rig() as rig:
        session, lease, client = await rig.driven()
        lease.say(SessionLost(session.id, "worker_lost", SECRET))
        assert await client.until_end() == "worker_lost"
        assert not [event for event in client.events if "passwd" in event.model_dump_json()]
        assert caplog.text.count(SECRET) == 1


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (RequestRefusedError("request_failed", SECRET), "request_failed"),
        (WorkerLostError(SECRET), "worker_lost"),
        (LeaseEndedError(SECRET), "closed"),
    ],
)
async def test_why_the_loop_could_not_do_what_it_was_asked_is_told_by_its_code(
    failure: PoolError, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask(message: Request) -> RequestDone:
        raise failure

    async with session_rig() as rig:
        _, lease, client = await rig.driven()
        monkeypatch.setattr(lease, "ask", ask)
        answer = await client.ask("pause")
        assert isinstance(answer, Error)
        assert answer.code == code
        assert "passwd" not in answer.model_dump_json()
        monkeypatch.undo()


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (RequestRefusedError("open_failed", SECRET), "open_failed"),
        (WorkerLostError(SECRET), "no_worker"),
        (ModelUnavailableError(SECRET), "model_unavailable"),
    ],
)
async def test_why_a_session_could_not_begin_is_told_by_its_code(
    failure: PoolError, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lease(*_: object) -> object:
        raise failure

    async with session_rig() as rig:
        monkeypatch.setattr(rig.pool, "lease", lease)
        with pytest.raises(SessionEndedError) as refused:
            await rig.open()
        assert refused.value.reason == code
        assert "passwd" not in str(refused.value)


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
        session, lease, client = await rig.driven()
        lease.put_out_chunk()
        await client.chunk()
        lease.put_out_chunk()
        assert await client.until_end() == "encode_failed"
        assert_well_formed(client)
        assert client.types()[-2:] == ["media.complete", "session.closed"]
        await session.gone()
        assert session.state.phase is SessionPhase.FAILED
