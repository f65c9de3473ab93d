"""The server's side of a session: order, ends, places and people."""

import asyncio
from functools import partial

import pytest
from fake_clock import FakeClock
from fake_pool import FRAMES
from session_rig import Person, eventually, session_rig

from reverie.gpu_pool.messages import Interrupt, Pause, PushInputs, ReleaseKeys, Seen, Watched
from reverie.gpu_pool.notices import Recovered, SessionLost, WorkerLost
from reverie.media import Codec
from reverie.sessions.attachment import Role
from reverie.sessions.commands import AnyCommand
from reverie.sessions.errors import SessionEndedError, TooManyError
from reverie.sessions.events import (
    ControlApplied,
    ControlSuperseded,
    Error,
    MediaChunk,
    MediaComplete,
    MediaInit,
    RequestAccepted,
    SessionAttached,
    SessionClosed,
    SessionInterrupted,
)
from reverie.sessions.limits import SessionLimits
from reverie.sessions.parsing import parse_command
from reverie.sessions.state import Phase


def assert_well_formed(person: Person) -> None:
    """What holds for every attachment, however it was ended."""
    events = person.events
    assert [event.sequence for event in events] == list(range(len(events)))
    media = [event for event in events if event.type.startswith("media.")]
    chunks = [event for event in media if isinstance(event, MediaChunk)]
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    if media:
        assert isinstance(media[0], MediaInit)
    assert all(not isinstance(event, MediaComplete) for event in media[:-1])


# --- order ---


async def test_the_first_events_are_the_session_its_format_and_its_frames() -> None:
    async with session_rig() as rig:
        _, lease, person = await rig.driven()
        lease.put_out_chunk()
        frames = await person.chunk()
        shown = [type for type in person.types() if type != "session.updated"]
        assert shown == ["session.attached", "media.init", *["media.chunk"] * FRAMES]
        assert [frame.frame for frame in frames] == list(range(FRAMES))
        assert [frame.last for frame in frames] == [False, False, False, True]


async def test_the_seed_is_told_with_the_format() -> None:
    async with session_rig() as rig:
        session = (await rig.open(seed=77)).session
        person = rig.attach(session)
        rig.lease(session).put_out_chunk()
        init = await person.until("media.init")
        assert isinstance(init, MediaInit)
        assert (init.seed, init.width, init.height) == (77, 16, 16)


async def test_a_receipt_comes_before_the_first_frame_that_shows_it() -> None:
    async with session_rig() as rig:
        _, lease, person = await rig.driven()
        answer = await person.ask("push_text", text="a city")
        lease.put_out_chunk()
        receipt = await person.until("control.applied")
        frame = await person.until("media.chunk")
        assert isinstance(receipt, ControlApplied)
        assert isinstance(frame, MediaChunk)
        assert isinstance(answer, RequestAccepted)
        assert (receipt.control, receipt.pts_us) == (answer.command, frame.pts_us)


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("way", ["close", "fail", "lost", "end", "drain"])
async def test_a_stream_ends_once_and_last_however_the_session_ends(codec: Codec, way: str) -> None:
    async with session_rig() as rig:
        session, lease, _ = await rig.driven()
        person = rig.attach(session, codec=codec)
        for _ in range(2):
            lease.put_out_chunk()
            await person.chunk()
        lease.put_out_chunk()
        match way:
            case "close":
                person.submit("close")
            case "fail":
                lease.fail_step(fatal=True)
            case "lost":
                lease.say(SessionLost(session.id, "worker_lost", "twice in a row"))
            case "end":
                session.end("deleted")
            case "drain":
                await session.drain(1.0)
        reason = await person.until_end()
        wanted = {"close": "closed", "fail": "non_finite", "lost": "worker_lost"}
        assert reason == wanted.get(way, {"end": "deleted", "drain": "shutdown"}.get(way))
        assert_well_formed(person)
        assert person.types()[-2:] == ["media.complete", "session.closed"]
        complete, closed = person.events[-2:]
        assert isinstance(complete, MediaComplete)
        assert isinstance(closed, SessionClosed)
        assert complete.reason == closed.reason == reason
        chunks = [event for event in person.events if isinstance(event, MediaChunk)]
        assert complete.chunks == len(chunks)
        assert complete.size_bytes == sum(chunk.size_bytes for chunk in chunks)


async def test_draining_delivers_what_was_put_out() -> None:
    async with session_rig() as rig:
        session, lease, person = await rig.driven()
        lease.put_out_chunk()
        await session.drain(1.0)
        await person.until_end()
        assert person.types().count("media.chunk") == FRAMES
        assert any(isinstance(each, Pause) for each in lease.asked)


# --- answers ---


async def test_every_command_gets_exactly_one_answer_even_when_the_session_ends() -> None:
    async with session_rig() as rig:
        session, lease, person = await rig.driven()
        lease.answering.clear()
        ids = [person.submit("pause"), *(person.submit("push_text", text="x") for _ in range(5))]
        await eventually(lambda: lease.asked)
        session.end("deleted")
        ids.append(person.submit("resume"))
        await person.until_end()
        answers = [
            event.command
            for event in person.events
            if isinstance(event, RequestAccepted | Error) and event.command
        ]
        assert answers == ids[:-1], "the last came after the end of the attachment"
        late = await person.attachment.request(_resume())
        assert isinstance(late, Error)
        assert late.code == "closed"


async def test_what_the_loop_refuses_is_an_error_at_the_field_and_nothing_changes() -> None:
    async with session_rig() as rig:
        session, lease, person = await rig.driven()
        lease.refusals = ["chunk_not_kept"]
        answer = await person.ask("rewind", chunk=3)
        assert isinstance(answer, Error)
        assert (answer.code, answer.field) == ("chunk_not_kept", "chunk")
        assert "session.interrupted" not in person.types()
        lease.put_out_chunk()
        assert await person.chunk()
        assert session.state.phase is Phase.ACTIVE


async def test_frames_that_come_while_a_refused_cut_is_asked_for_are_not_lost() -> None:
    async with session_rig() as rig:
        _, lease, person = await rig.driven()
        lease.refusals = ["chunk_not_kept"]
        lease.answering.clear()
        person.submit("rewind", chunk=3)
        await eventually(lambda: lease.asked)
        lease.put_out_chunk()
        lease.answering.set()
        assert [frame.chunk for frame in await person.chunk()] == [0] * FRAMES


async def test_a_viewer_may_look_and_not_touch() -> None:
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
        _, lease, person = await rig.driven()
        lease.put_out_chunk()
        await person.chunk()
        wrong = await person.ask("playhead", chunk=5, pts_us=0)
        assert isinstance(wrong, Error)
        assert (wrong.code, wrong.field) == ("not_shown", "chunk")
        assert "request.accepted" not in person.types()
        assert Seen(lease.session, 0) in lease.sent


async def test_an_unknown_stream_is_named() -> None:
    async with session_rig() as rig:
        _, _, person = await rig.driven()
        answer = await person.ask("request_key_frame", stream="sound")
        assert isinstance(answer, Error)
        assert (answer.code, answer.field) == ("unknown_stream", "stream")


# --- prompts, parameters, keys ---


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
async def test_a_blank_prompt_wishes_for_nothing(text: str) -> None:
    async with session_rig() as rig:
        session, lease, person = await rig.driven("a lake")
        assert isinstance(await person.ask("push_text", text=text), RequestAccepted)
        assert session.view.prompt == ""
        (pushed,) = [each for each in lease.sent if isinstance(each, PushInputs)]
        assert [item.text for item in pushed.inputs if hasattr(item, "text")] == [""]


async def test_a_prompt_over_the_limit_is_an_error_that_names_it() -> None:
    async with session_rig(SessionLimits(prompt_chars=20)) as rig:
        session, lease, person = await rig.driven("a lake")
        for command, field in (("push_text", "text"), ("update", "prompt")):
            answer = await person.ask(command, **{field: "x" * 21})
            assert isinstance(answer, Error)
            assert (answer.code, answer.field) == ("too_long", field)
            assert "20" in answer.message
        assert session.view.prompt == "a lake"
        assert not [each for each in lease.sent if isinstance(each, PushInputs)]
        assert isinstance(await person.ask("push_text", text="x" * 20), RequestAccepted)


async def test_an_update_is_all_or_nothing() -> None:
    async with session_rig() as rig:
        session, lease, person = await rig.driven("a lake")
        answer = await person.ask("update", prompt="b", parameters={"speed": 99.0})
        assert isinstance(answer, Error)
        assert answer.field == "parameters.speed"
        assert session.view.prompt == "a lake"
        assert not lease.asked
        accepted = await person.ask("update", prompt="b", parameters={"speed": 2.0}, reset=True)
        assert isinstance(accepted, RequestAccepted)
        assert (session.view.prompt, session.view.parameters[0].value) == ("b", 2.0)
        assert [type(each).__name__ for each in lease.asked] == ["Reset"]


async def test_keys_are_released_when_the_driver_leaves_or_is_replaced() -> None:
    async with session_rig() as rig:
        session, lease, person = await rig.driven()
        await person.ask("push_action", action={"move": "left"}, edge="press")
        person.attachment.detach()
        assert ReleaseKeys(lease.session) in lease.sent
        lease.sent.clear()
        second = rig.attach(session)
        await second.ask("push_action", action={"move": "left"}, edge="press")
        rig.attach(session)
        assert ReleaseKeys(lease.session) in lease.sent


async def test_a_release_finds_room_where_nothing_else_does() -> None:
    async with session_rig(SessionLimits(pending_commands=4)) as rig:
        _, lease, person = await rig.driven()
        lease.answering.clear()
        person.submit("pause")
        await eventually(lambda: lease.asked)
        presses = [
            person.submit("push_action", action={"move": "left"}, edge="press") for _ in range(6)
        ]
        release = person.submit("push_action", action={"move": "left"}, edge="release")
        lease.answering.set()
        await eventually(lambda: ReleaseKeys(lease.session) in lease.sent)
        await person.ask("release_all")
        answers = {
            event.command: event
            for event in person.events
            if isinstance(event, RequestAccepted | Error)
        }
        refused = [answers[id] for id in presses[4:]]
        assert all(isinstance(each, Error) and each.code == "too_many" for each in refused)
        assert isinstance(answers[release], RequestAccepted)
        last_push = max(i for i, each in enumerate(lease.sent) if isinstance(each, PushInputs))
        assert lease.sent.index(ReleaseKeys(lease.session)) > last_push


async def test_a_burst_is_bounded_and_every_control_is_accounted_for() -> None:
    async with session_rig(SessionLimits(pending_controls=100)) as rig:
        session, lease, person = await rig.driven()
        ids = [person.submit("update", parameters={"speed": 1.0}) for _ in range(200)]
        await eventually(lambda: len(session._receipts) >= 100 or not session._desk._inbox)
        last = await person.ask("release_all")
        assert isinstance(last, RequestAccepted)
        lease.put_out_chunk()
        await person.chunk()
        fates = {
            (event.control if isinstance(event, ControlApplied) else event.command)
            for event in person.events
            if isinstance(event, ControlApplied | Error)
        }
        assert set(ids) <= fates
        assert person.types().count("session.updated") < 10


# --- cuts ---


async def test_after_the_word_of_an_interrupt_no_old_frame_comes() -> None:
    async with session_rig() as rig:
        _, lease, person = await rig.driven()
        lease.put_out_chunk()
        await person.chunk()
        lease.put_out_chunk()  # chunk 1 waits in the outbox, unseen
        lease.answering.clear()
        person.submit("interrupt")
        await eventually(lambda: lease.asked)
        lease.put_out_chunk()  # chunk 2 is on its way when the interrupt is
        lease.answering.set()
        word = await person.until("session.interrupted")
        assert isinstance(word, SessionInterrupted)
        lease.put_out_chunk()
        frames = await person.chunk()
        assert [frame.chunk for frame in frames] == [3] * FRAMES
        assert frames[0].pts_us == word.next_us
        assert frames[0].discontinuity
        assert (word.reason, word.chunk, word.seen_us) == ("interrupt", 0, 150_000)
        assert lease.asked == [Interrupt(0, lease.session, 0)]
        assert_well_formed(person)


async def test_new_frames_that_come_with_the_answer_follow_its_word() -> None:
    async with session_rig() as rig:
        _, lease, person = await rig.driven()
        lease.put_out_chunk()
        await person.chunk()
        person.submit("interrupt")
        await eventually(lambda: lease.asked)
        await asyncio.sleep(0)
        lease.put_out_chunk()
        types = []
        while "media.chunk" not in types:
            types.append((await person.take()).type)
        assert types.index("session.interrupted") < types.index("media.chunk")


async def test_an_interrupt_before_anything_was_seen_goes_back_to_the_start() -> None:
    async with session_rig() as rig:
        _, lease, person = await rig.driven()
        answer = await person.ask("interrupt")
        assert isinstance(answer, RequestAccepted)
        assert lease.asked == [Interrupt(0, lease.session, None)]


async def test_reset_takes_a_new_seed_and_tells_it() -> None:
    async with session_rig() as rig:
        session, lease, person = await rig.driven()
        lease.put_out_chunk()
        await person.chunk()
        await person.ask("reset", seed=123)
        lease.put_out_chunk()
        init = await person.until("media.init")
        assert isinstance(init, MediaInit)
        assert (init.seed, session.view.seed) == (123, 123)


# --- pausing ---


async def test_pausing_twice_asks_once_and_stepping_needs_a_pause() -> None:
    async with session_rig() as rig:
        session, lease, person = await rig.driven()
        step = await person.ask("step")
        assert isinstance(step, Error)
        assert step.code == "not_paused"
        for command in ("pause", "pause", "step", "resume", "resume", "resume"):
            assert isinstance(await person.ask(command), RequestAccepted)
        assert [type(each).__name__ for each in lease.asked] == ["Pause", "Advance", "Resume"]
        assert session.state.phase is Phase.ACTIVE


async def test_a_paused_session_is_still_paused_after_a_rejoin() -> None:
    async with session_rig() as rig:
        session, _, person = await rig.driven()
        await person.ask("pause")
        person.attachment.detach()
        assert session.view.state == "detached"
        second = rig.attach(session)
        attached = await second.until("session.attached")
        assert isinstance(attached, SessionAttached)
        assert attached.view.state == "paused"


# --- people ---


async def test_a_second_driver_takes_over_and_the_first_is_told() -> None:
    async with session_rig() as rig:
        session, lease, first = await rig.driven()
        second = rig.attach(session)
        assert await first.until_end() == "replaced"
        assert isinstance(first.events[-1], Error)
        assert first.events[-1].code == "replaced"
        lease.put_out_chunk()
        assert await second.chunk()
        answer = await first.attachment.request(_resume())
        assert isinstance(answer, Error)
        assert not session.state.over


async def test_reconnecting_at_random_leaves_one_loop_and_always_shows_a_picture() -> None:
    async with session_rig() as rig:
        session, lease, person = await rig.driven()
        for turn in range(20):
            lease.put_out_chunk()
            if turn % 3:
                await person.chunk()
            person.attachment.detach()
            person = rig.attach(session, codec=list(Codec)[turn % 3])
            await person.until("media.init")
            await person.until("media.chunk")
        assert rig.pool.opened == 1


async def test_who_comes_late_is_shown_the_newest_picture_and_the_loop_goes_on() -> None:
    async with session_rig() as rig:
        session, lease, person = await rig.driven()
        lease.put_out_chunk()
        await person.until("media.chunk")
        person.attachment.detach()
        assert lease.sent[-1] == Watched(session.id, False)
        lease.sent.clear()
        late = rig.attach(session)
        assert lease.sent == [Seen(session.id, 0), Watched(session.id, True)]
        await late.until("media.init")


async def test_two_sessions_never_share_a_frame_or_an_event() -> None:
    async with session_rig() as rig:
        sessions = [await rig.driven(f"prompt {n}") for n in range(2)]
        for _ in range(5):
            for _, lease, _ in sessions:
                lease.put_out_chunk()
            for _, _, person in sessions:
                await person.chunk()
        for session, _, person in sessions:
            assert {event.session for event in person.events} == {session.id}


async def test_attachments_are_limited() -> None:
    async with session_rig(SessionLimits(attachments=2)) as rig:
        session, _, _ = await rig.driven()
        rig.attach(session, Role.VIEWER)
        with pytest.raises(TooManyError):
            rig.attach(session, Role.VIEWER)
        rig.attach(session)  # takes the place of the driver


# --- the slow and the idle ---


async def test_a_slow_viewer_loses_frames_is_ended_and_disturbs_nobody() -> None:
    clock, limits = FakeClock(), SessionLimits(outbox_frames=8, stall_s=5.0)
    async with session_rig(limits, clock) as rig:
        session, lease, driver = await rig.driven()
        slow = rig.attach(session, Role.VIEWER)
        for _ in range(10):
            lease.put_out_chunk()
            await driver.chunk()
        assert len(slow.attachment.outbox) < 8 + 8
        assert slow.attachment.outbox.skipped > 20
        await eventually(lambda: clock.sleepers)
        clock.advance(4.9)
        await asyncio.sleep(0.01)
        assert slow.attachment.ended is None
        clock.advance(0.2)
        await eventually(lambda: slow.attachment.ended)
        assert await slow.until_end() == "slow_viewer"
        assert isinstance(slow.events[-1], Error)
        assert slow.events[-1].code == "slow_viewer"
        assert_well_formed(slow)
        lease.put_out_chunk()
        assert await driver.chunk()
        chunks = [event for event in driver.events if isinstance(event, MediaChunk)]
        assert len(chunks) == 11 * FRAMES
        assert not any(chunk.dropped for chunk in chunks)


async def test_a_slow_viewer_who_reads_again_gets_fresh_pictures() -> None:
    async with session_rig(SessionLimits(outbox_frames=8)) as rig:
        session, lease, driver = await rig.driven()
        slow = rig.attach(session, Role.VIEWER, Codec.H264)
        for _ in range(10):
            lease.put_out_chunk()
            await driver.chunk()
        frame = await slow.until("media.chunk")
        assert isinstance(frame, MediaChunk)
        assert frame.key
        assert frame.chunk >= 7
        assert frame.dropped > 20


async def test_who_does_nothing_and_is_shown_nothing_is_ended() -> None:
    clock = FakeClock()
    async with session_rig(SessionLimits(idle_s=5, stall_s=60, grace_s=3), clock) as rig:
        session, _, person = await rig.driven()
        await person.until("session.attached")
        for _ in range(2):
            await eventually(lambda: clock.sleepers)
            clock.advance(4)
            await asyncio.sleep(0.01)
            if not person.attachment.ended:
                await person.ask("release_all")
        assert person.attachment.ended is None
        clock.advance(5)
        assert await person.until_end() == "idle"
        await eventually(lambda: clock.sleepers)
        clock.advance(3)
        await session.gone()
        assert session.state.reason == "abandoned"


async def test_who_only_watches_a_running_generation_is_not_ended() -> None:
    clock = FakeClock()
    async with session_rig(SessionLimits(idle_s=5, stall_s=60), clock) as rig:
        session, lease, _ = await rig.driven()
        viewer = rig.attach(session, Role.VIEWER)
        for _ in range(5):
            clock.advance(3)
            lease.put_out_chunk()
            while (await viewer.until("media.chunk")).type != "media.chunk":
                pass
            await asyncio.sleep(0.01)
        assert viewer.attachment.ended is None


async def test_a_session_that_nobody_comes_back_to_is_closed_after_its_grace() -> None:
    clock = FakeClock()
    async with session_rig(SessionLimits(grace_s=30), clock) as rig:
        session, _, person = await rig.driven()
        person.attachment.detach()
        await eventually(lambda: clock.sleepers)
        clock.advance(29)
        await asyncio.sleep(0.01)
        person = rig.attach(session)
        clock.advance(29)
        await asyncio.sleep(0.01)
        assert not session.state.over
        person.attachment.detach()
        await eventually(lambda: clock.sleepers)
        clock.advance(31)
        await session.gone()
        assert rig.pool.free == 2


async def test_a_session_that_nobody_ever_came_to_is_closed_too() -> None:
    clock = FakeClock()
    async with session_rig(SessionLimits(grace_s=30), clock) as rig:
        session = (await rig.open()).session
        await eventually(lambda: clock.sleepers)
        clock.advance(31)
        await session.gone()
        assert session.state.reason == "abandoned"


# --- failures and recovery ---


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


async def test_an_encoder_that_fails_ends_the_session_with_a_typed_reason() -> None:
    async with session_rig() as rig:
        session, lease, person = await rig.driven()
        lease.put_out_chunk()
        await person.chunk()
        for video in session._outputs:
            video.fanout._encode_limit_s = -1.0
        lease.put_out_chunk()
        assert await person.until_end() == "encode_failed"
        await session.gone()
        assert session.state.phase is Phase.FAILED


# --- places ---


@pytest.mark.parametrize("round", range(2))
async def test_places_come_back_however_sessions_end(round: int) -> None:
    async with session_rig(slots=2) as rig:
        for turn in range(10):
            session, lease, person = await rig.driven()
            match (turn + round) % 5:
                case 0:
                    await person.ask("close")
                case 1:
                    person.attachment.detach()
                    session.end("abandoned")
                case 2:
                    lease.put_out_chunk()
                    session.end("deleted")
                case 3:
                    lease.answering.clear()
                    person.submit("interrupt")
                    await eventually(partial(bool, lease.asked))
                    session.end("deleted")
                case 4:
                    lease.fail_step(fatal=True)
            await session.gone()
            assert rig.pool.free == 2


async def test_who_waits_in_line_is_told_their_place_and_then_starts() -> None:
    async with session_rig(slots=1) as rig:
        first = (await rig.open()).session
        second = (await rig.open()).session
        assert second.state.phase is Phase.QUEUED
        person = rig.attach(second)
        queued = await person.until("request.queued")
        assert queued.type == "request.queued"
        assert queued.position == 1
        text = person.submit("push_text", text="said in the line")
        first.end("closed")
        await person.until("request.started")
        rig.lease(second).put_out_chunk()
        receipt = await person.until("control.applied")
        assert isinstance(receipt, ControlApplied)
        assert receipt.control == text


async def test_ending_while_queued_leaves_the_others_as_they_were() -> None:
    async with session_rig(slots=1) as rig:
        first, lease, person = await rig.driven()
        second = (await rig.open()).session
        second.end("closed")
        second.end("closed")
        await second.gone()
        lease.put_out_chunk()
        assert await person.chunk()
        first.end("closed")
        await first.gone()
        third = (await rig.open()).session
        assert rig.lease(third)


async def test_nobody_attaches_to_a_session_that_is_over() -> None:
    async with session_rig() as rig:
        session, _, _ = await rig.driven()
        session.end("deleted")
        with pytest.raises(SessionEndedError) as caught:
            rig.attach(session)
        assert caught.value.reason == "deleted"


async def test_a_session_whose_host_is_cancelled_gives_its_place_back() -> None:
    async with session_rig() as rig:
        session, _, person = await rig.driven()
        name = f"session {session.id}"
        (host,) = [task for task in asyncio.all_tasks() if task.get_name() == name]
        host.cancel()
        await session.gone()
        assert await person.until_end() == "shutdown"
        assert rig.pool.free == 2


def _resume() -> AnyCommand:
    return parse_command({"type": "resume", "id": "late"})
