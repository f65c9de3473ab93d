"""Commands: exactly one answer each, at once or after those before it."""

from fake_pool import FRAMES
from session_rig import Client, session_rig
from waiting import until

from reverie.gpu_pool.wire.session_messages import PlayheadMoved
from reverie.sessions.attachments.attachment import AttachOptions, Role
from reverie.sessions.protocol.commands import AnyCommand, Playhead
from reverie.sessions.protocol.events import (
    Error,
    RequestAccepted,
)
from reverie.sessions.protocol.parsing import parse_command
from reverie.sessions.state.session_phases import SessionPhase


async def test_every_command_gets_exactly_one_answer_even_when_the_session_ends() -> None:
    async with session_rig() as rig:
        session, lease, client = await rig.driven()
        lease.answering.clear()
        ids = [client.submit("pause"), *(client.submit("push_text", text="x") for _ in range(5))]
        await until(lambda: lease.asked)
        session.end("deleted")
        ids.append(client.submit("resume"))
        await client.until_end()
        answers = [
            event.command
            for event in client.events
            if isinstance(event, RequestAccepted | Error) and event.command
        ]
        assert answers == ids[:-1], "the last came after the end of the attachment"
        late = await client.attachment.request(_resume())
        assert isinstance(late, Error)
        assert late.code == "closed"


async def test_what_the_loop_refuses_is_an_error_at_the_field_and_nothing_changes() -> None:
    async with session_rig() as rig:
        session, lease, client = await rig.driven()
        lease.refusals = ["chunk_not_kept"]
        answer = await client.ask("rewind", chunk=3)
        assert isinstance(answer, Error)
        assert (answer.code, answer.field) == ("chunk_not_kept", "chunk")
        assert "session.interrupted" not in client.types()
        lease.put_out_chunk()
        assert await client.chunk()
        assert session.state.phase is SessionPhase.ACTIVE


async def test_frames_that_come_while_a_refused_cut_is_asked_for_are_not_lost() -> None:
    async with session_rig() as rig:
        _, lease, client = await rig.driven()
        lease.refusals = ["chunk_not_kept"]
        lease.answering.clear()
        client.submit("rewind", chunk=3)
        await until(lambda: lease.asked)
        lease.put_out_chunk()
        lease.answering.set()
        assert [frame.chunk for frame in await client.chunk()] == [0] * FRAMES


async def test_a_viewer_may_watch_and_not_control() -> None:
    async with session_rig() as rig:
        session, lease, _ = await rig.driven()
        viewer = rig.attach(session, Role.VIEWER)
        for command in ("pause", "close", "interrupt", "release_all"):
            answer = await viewer.ask(command)
            assert isinstance(answer, Error)
            assert answer.code == "read_only"
        assert isinstance(await viewer.ask("request_key_frame"), RequestAccepted)
        lease.put_out_chunk()
        assert len(await viewer.chunk()) == FRAMES
        assert not session.state.over


async def test_a_playhead_is_answered_only_when_it_is_wrong() -> None:
    async with session_rig() as rig:
        _, lease, client = await rig.driven()
        lease.put_out_chunk()
        await client.chunk()
        wrong = await client.ask("playhead", chunk=5, pts_us=0)
        assert isinstance(wrong, Error)
        assert (wrong.code, wrong.field) == ("not_shown", "chunk")
        assert "request.accepted" not in client.types()
        assert PlayheadMoved(lease.session, 0, "world_model") in lease.sent


async def test_the_worker_is_told_whether_a_playhead_counts_in_its_time() -> None:
    async with session_rig() as rig:
        session, lease, _ = await rig.driven()
        lease.put_out_chunk()
        client = Client(session.attach(Role.DRIVER, AttachOptions(in_time=True)))
        client.attachment.submit(Playhead(id="p", chunk=0, pts_us=0))
        assert PlayheadMoved(lease.session, 0, "world_model", in_time=True) in lease.sent


async def test_an_unknown_stream_is_named() -> None:
    async with session_rig() as rig:
        _, _, client = await rig.driven()
        answer = await client.ask("request_key_frame", stream="sound")
        assert isinstance(answer, Error)
        assert (answer.code, answer.field) == ("unknown_stream", "stream")


def _resume() -> AnyCommand:
    return parse_command({"type": "resume", "id": "late"})
