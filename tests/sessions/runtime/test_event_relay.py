"""From the loop to the clients: the order of events, and the last ones."""

import pytest
from fake_pool import FRAMES
from session_rig import assert_well_formed, session_rig

from reverie.engine import emissions
from reverie.gpu_pool.wire.notifications import SessionLost
from reverie.gpu_pool.wire.session_messages import Pause
from reverie.media import Codec
from reverie.sessions.protocol.events import (
    ControlApplied,
    ControlSuperseded,
    Error,
    RequestAccepted,
    SessionClosed,
)
from reverie.sessions.protocol.media_events import MediaChunk, MediaComplete, MediaInit


async def test_the_first_events_are_the_session_its_format_and_its_frames() -> None:
    async with session_rig() as rig:
        _, lease, client = await rig.driven()
        lease.put_out_chunk()
        frames = await client.chunk()
        shown = [type for type in client.types() if type != "session.updated"]
        assert shown == ["session.attached", "media.init", *["media.chunk"] * FRAMES]
        assert [frame.frame for frame in frames] == list(range(FRAMES))
        assert [frame.last for frame in frames] == [False, False, False, True]


async def test_the_seed_is_told_with_the_format() -> None:
    async with session_rig() as rig:
        session = (await rig.open(seed=77)).session
        client = rig.attach(session)
        rig.lease(session).put_out_chunk()
        init = await client.until("media.init")
        assert isinstance(init, MediaInit)
        assert (init.seed, init.width, init.height) == (77, 16, 16)


async def test_a_receipt_comes_before_the_first_frame_that_shows_it() -> None:
    async with session_rig() as rig:
        _, lease, client = await rig.driven()
        answer = await client.ask("push_text", text="a city")
        lease.put_out_chunk()
        receipt = await client.until("control.applied")
        frame = await client.until("media.chunk")
        assert isinstance(receipt, ControlApplied)
        assert isinstance(frame, MediaChunk)
        assert isinstance(answer, RequestAccepted)
        assert (receipt.control, receipt.pts_us) == (answer.command, frame.pts_us)


async def test_a_receipt_does_not_wait_for_parts_that_act_later_than_its_first_frame() -> None:
    async with session_rig() as rig:
        session, lease, client = await rig.driven()
        answer = await client.ask("update", prompt="b", parameters={"speed": 2.0})
        first, second = lease.waiting_controls()
        lease.say(emissions.ControlApplied(session.id, first, 0, 0, 0))
        lease.put_out_chunk()
        await client.chunk()
        lease.say(emissions.ControlApplied(session.id, second, 1, 1, 200_000))
        lease.put_out_chunk()
        await client.chunk()
        types = [type for type in client.types() if type in ("control.applied", "media.chunk")]
        assert types == ["control.applied", *["media.chunk"] * 2 * FRAMES]
        assert isinstance(answer, RequestAccepted)


async def test_a_prompt_that_cannot_be_read_is_told_and_taken_back() -> None:
    async with session_rig() as rig:
        session, lease, client = await rig.driven("a lake")
        answer = await client.ask("update", prompt="b", parameters={"speed": 2.0})
        assert isinstance(answer, RequestAccepted)
        number, prompt = lease.waiting_controls()
        code = emissions.FaultCode.PROMPT_TIMEOUT
        lease.say(emissions.ControlFailed(session.id, number, code, "too late", 1.0))
        lease.say(emissions.ControlFailed(session.id, prompt, code, "too late", "a lake"))
        receipt = await client.until("control.superseded")
        assert isinstance(receipt, ControlSuperseded)
        assert (receipt.control, receipt.by) == (answer.command, None)
        told = [event for event in client.events if isinstance(event, Error)]
        fields = [(error.code, error.field) for error in told]
        assert fields[0] == ("prompt_timeout", "parameters.speed")
        error = await client.until("error")
        assert isinstance(error, Error)
        assert (error.code, error.field) == ("prompt_timeout", "prompt")
        assert "too late" not in error.message
        values = {each.name: each.value for each in session.view.parameters}
        assert (session.view.prompt, values["speed"]) == ("a lake", 1.0)


async def test_a_session_that_cannot_begin_because_of_its_prompt_says_so() -> None:
    async with session_rig() as rig:
        session, lease, client = await rig.driven()
        code = emissions.FaultCode.PROMPT_FAILED
        lease.say(emissions.StepFailed(session.id, code, 0, 0, "a secret", fatal=True))
        assert await client.until_end() == "prompt_failed"
        [error] = [event for event in client.events if isinstance(event, Error)]
        assert "the session's first prompt could not be read" in error.message
        assert "secret" not in error.message


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("way", ["close", "fail", "lost", "end", "drain"])
async def test_a_stream_ends_once_and_last_however_the_session_ends(codec: Codec, way: str) -> None:
    async with session_rig() as rig:
        session, lease, _ = await rig.driven()
        client = rig.attach(session, codec=codec)
        for _ in range(2):
            lease.put_out_chunk()
            await client.chunk()
        lease.put_out_chunk()
        match way:
            case "close":
                client.submit("close")
            case "fail":
                lease.fail_step(fatal=True)
            case "lost":
                lease.say(SessionLost(session.id, "worker_lost", "twice in a row"))
            case "end":
                session.end("deleted")
            case "drain":
                await session.drain(1.0)
        reason = await client.until_end()
        wanted = {"close": "closed", "fail": "non_finite", "lost": "worker_lost"}
        assert reason == wanted.get(way, {"end": "deleted", "drain": "shutdown"}.get(way))
        assert_well_formed(client)
        assert client.types()[-2:] == ["media.complete", "session.closed"]
        complete, closed = client.events[-2:]
        assert isinstance(complete, MediaComplete)
        assert isinstance(closed, SessionClosed)
        assert complete.reason == closed.reason == reason
        chunks = [event for event in client.events if isinstance(event, MediaChunk)]
        assert complete.chunks == len(chunks)
        assert complete.size_bytes == sum(chunk.size_bytes for chunk in chunks)


async def test_draining_delivers_what_was_put_out() -> None:
    async with session_rig() as rig:
        session, lease, client = await rig.driven()
        lease.put_out_chunk()
        await session.drain(1.0)
        await client.until_end()
        assert client.types().count("media.chunk") == FRAMES
        assert any(isinstance(each, Pause) for each in lease.asked)
