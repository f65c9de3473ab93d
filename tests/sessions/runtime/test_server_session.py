"""A session takes its place, waits for it, and always gives it back."""

import asyncio
from functools import partial

import pytest
from session_rig import session_rig
from waiting import until

from reverie.sessions.protocol.errors import SessionEndedError
from reverie.sessions.protocol.events import (
    ControlApplied,
)
from reverie.sessions.state.session_phases import SessionPhase


@pytest.mark.parametrize("round", range(2))
async def test_places_come_back_however_sessions_end(round: int) -> None:
    async with session_rig(slots=2) as rig:
        for turn in range(10):
            session, lease, client = await rig.driven()
            match (turn + round) % 5:
                case 0:
                    await client.ask("close")
                case 1:
                    client.attachment.detach()
                    session.end("abandoned")
                case 2:
                    lease.put_out_chunk()
                    session.end("deleted")
                case 3:
                    lease.answering.clear()
                    client.submit("interrupt")
                    await until(partial(bool, lease.asked))
                    session.end("deleted")
                case 4:
                    lease.fail_step(fatal=True)
            await session.gone()
            assert rig.pool.free == 2


async def test_a_queued_session_is_told_its_position_and_then_starts() -> None:
    async with session_rig(slots=1) as rig:
        first = (await rig.open()).session
        second = (await rig.open()).session
        assert second.state.phase is SessionPhase.QUEUED
        client = rig.attach(second)
        queued = await client.until("request.queued")
        assert queued.type == "request.queued"
        assert queued.position == 1
        text = client.submit("push_text", text="said in the line")
        first.end("closed")
        await client.until("request.started")
        rig.lease(second).put_out_chunk()
        receipt = await client.until("control.applied")
        assert isinstance(receipt, ControlApplied)
        assert receipt.control == text


async def test_ending_while_queued_leaves_the_others_as_they_were() -> None:
    async with session_rig(slots=1) as rig:
        first, lease, client = await rig.driven()
        second = (await rig.open()).session
        second.end("closed")
        second.end("closed")
        await second.gone()
        lease.put_out_chunk()
        assert await client.chunk()
        first.end("closed")
        await first.gone()
        third = (await rig.open()).session
        assert rig.lease(third)


async def test_a_session_that_ends_as_its_place_comes_gives_it_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with session_rig(slots=1) as rig:
        first, lease, _ = await rig.driven()
        second = (await rig.open()).session
        await lease.release()
        second.end("closed")
        await second.gone()
        assert rig.pool.free == 1
        first.end("closed")
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_no_client_can_attach_to_a_session_that_has_ended() -> None:
    async with session_rig() as rig:
        session, _, _ = await rig.driven()
        session.end("deleted")
        with pytest.raises(SessionEndedError) as caught:
            rig.attach(session)
        assert caught.value.reason == "deleted"


async def test_a_session_whose_host_is_cancelled_gives_its_place_back() -> None:
    async with session_rig() as rig:
        session, _, client = await rig.driven()
        name = f"session {session.id}"
        (host,) = [task for task in asyncio.all_tasks() if task.get_name() == name]
        host.cancel()
        await session.gone()
        assert await client.until_end() == "shutdown"
        assert rig.pool.free == 2
