"""Controls that act now, as their sender and the viewers hear of it."""

import pytest
from fake_pool import FRAMES
from session_rig import assert_well_formed, session_rig

from reverie.gpu_pool.wire.errors import WorkerLostError
from reverie.gpu_pool.wire.messages import RequestDone
from reverie.gpu_pool.wire.session_messages import ActNow, PushInputs, Request
from reverie.sessions.attachments.attachment import Role
from reverie.sessions.protocol.errors import CommandError
from reverie.sessions.protocol.events import (
    ControlApplied,
    MediaChunk,
    RequestAccepted,
    SessionInterrupted,
)
from reverie.sessions.protocol.parsing import parse_command

COMMANDS: list[tuple[str, dict[str, object]]] = [
    ("push_action", {"action": {"move": "left"}, "edge": "press"}),
    ("push_text", {"text": "a city"}),
    ("update", {"parameters": {"speed": 2.0}}),
]


@pytest.mark.parametrize(("command", "fields"), COMMANDS)
async def test_what_is_unseen_is_dropped_and_the_next_frame_shows_the_control(
    command: str, fields: dict[str, object]
) -> None:
    async with session_rig() as rig:
        _, lease, client = await rig.driven()
        lease.put_out_chunk()
        seen = (await client.chunk())[-1]
        lease.put_out_chunk()  # chunk 1 waits, unseen
        client.submit("playhead", chunk=0, pts_us=seen.pts_us)
        acting = client.submit(command, act="now", **fields)
        told = await client.until("session.interrupted")
        assert isinstance(told, SessionInterrupted)
        assert (told.reason, told.command, told.chunk) == ("act", acting, 0)
        accepted = await client.until("request.accepted")
        assert isinstance(accepted, RequestAccepted)
        assert accepted.command == acting
        lease.put_out_chunk()
        receipt = await client.until("control.applied")
        frames = await client.chunk()
        assert isinstance(receipt, ControlApplied)
        assert (receipt.control, receipt.pts_us) == (acting, frames[0].pts_us)
        assert [frame.chunk for frame in frames] == [2] * FRAMES, "what waited was not dropped"
        assert_well_formed(client)


async def test_with_nothing_unseen_there_is_no_interrupt() -> None:
    async with session_rig() as rig:
        _, lease, client = await rig.driven()
        lease.put_out_chunk()
        seen = (await client.chunk())[-1]
        client.submit("playhead", chunk=0, pts_us=seen.pts_us)
        client.submit("push_action", action={"move": "left"}, act="now")
        await client.until("request.accepted")
        lease.put_out_chunk()
        await client.chunk()
        assert "session.interrupted" not in client.types()
        assert "control.applied" in client.types()


async def test_by_default_a_control_acts_behind_what_was_made() -> None:
    async with session_rig() as rig:
        _, lease, client = await rig.driven()
        lease.put_out_chunk()
        lease.put_out_chunk()
        assert isinstance(await client.ask("push_action", action={"move": "left"}), RequestAccepted)
        assert not lease.asked
        assert any(isinstance(each, PushInputs) for each in lease.sent)


async def test_a_viewer_hears_of_the_cut_and_gets_no_old_frame_after_it() -> None:
    async with session_rig() as rig:
        session, lease, driver = await rig.driven()
        viewer = rig.attach(session, Role.VIEWER)
        lease.put_out_chunk()
        await driver.chunk()
        await viewer.chunk()
        lease.put_out_chunk()
        driver.submit("push_action", action={"move": "left"}, act="now")
        told = await viewer.until("session.interrupted")
        lease.put_out_chunk()
        frame = await viewer.until("media.chunk")
        assert isinstance(told, SessionInterrupted)
        assert isinstance(frame, MediaChunk)
        assert (frame.chunk, frame.pts_us) == (2, told.next_us)
        assert_well_formed(viewer)


async def test_a_control_that_was_sent_as_the_worker_was_lost_is_accepted() -> None:
    async with session_rig() as rig:
        _, lease, client = await rig.driven()
        lease.put_out_chunk()
        await client.chunk()
        ask = lease.ask

        async def lost(message: Request) -> RequestDone:
            if isinstance(message, ActNow):
                raise WorkerLostError("as the test said")
            return await ask(message)

        lease.ask = lost  # type: ignore[method-assign]
        answer = await client.ask("push_action", action={"move": "left"}, act="now")
        assert isinstance(answer, RequestAccepted)


def test_a_control_acts_now_or_after_and_nothing_else() -> None:
    action = {"type": "push_action", "id": "k", "action": {"move": "left"}}
    with pytest.raises(CommandError) as refused:
        parse_command({**action, "act": "soon"})
    assert refused.value.field == "act"
    assert getattr(parse_command(action), "act", None) == "after"
