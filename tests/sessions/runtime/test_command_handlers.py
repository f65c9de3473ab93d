"""What commands do to prompts, parameters, keys and the pause."""

import pytest
from session_rig import session_rig
from waiting import until

from reverie.gpu_pool.wire.notifications import SessionRecovered, WorkerLost
from reverie.gpu_pool.wire.session_messages import PushInputs, ReleaseKeys
from reverie.sessions.protocol.events import (
    ControlApplied,
    ControlSuperseded,
    Error,
    RequestAccepted,
    SessionAttached,
)
from reverie.sessions.state.limits import SessionLimits
from reverie.sessions.state.session_phases import SessionPhase


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
async def test_a_blank_prompt_is_empty(text: str) -> None:
    async with session_rig() as rig:
        session, lease, client = await rig.driven("a lake")
        assert isinstance(await client.ask("push_text", text=text), RequestAccepted)
        assert session.view.prompt == ""
        (pushed,) = [each for each in lease.sent if isinstance(each, PushInputs)]
        assert [item.text for item in pushed.inputs if hasattr(item, "text")] == [""]


async def test_a_prompt_over_the_limit_is_an_error_that_names_it() -> None:
    async with session_rig(SessionLimits(prompt_chars=20)) as rig:
        session, lease, client = await rig.driven("a lake")
        for command, field in (("push_text", "text"), ("update", "prompt")):
            answer = await client.ask(command, **{field: "x" * 21})
            assert isinstance(answer, Error)
            assert (answer.code, answer.field) == ("too_long", field)
            assert "20" in answer.message
        assert session.view.prompt == "a lake"
        assert not [each for each in lease.sent if isinstance(each, PushInputs)]
        assert isinstance(await client.ask("push_text", text="x" * 20), RequestAccepted)


async def test_an_update_is_all_or_nothing() -> None:
    async with session_rig() as rig:
        session, lease, client = await rig.driven("a lake")
        answer = await client.ask("update", prompt="b", parameters={"speed": 99.0})
        assert isinstance(answer, Error)
        assert answer.field == "parameters.speed"
        assert session.view.prompt == "a lake"
        assert not lease.asked
        accepted = await client.ask("update", prompt="b", parameters={"speed": 2.0}, reset=True)
        assert isinstance(accepted, RequestAccepted)
        assert (session.view.prompt, session.view.parameters[0].value) == ("b", 2.0)
        assert [type(each).__name__ for each in lease.asked] == ["Reset"]


async def test_keys_are_released_when_the_driver_leaves_or_is_replaced() -> None:
    async with session_rig() as rig:
        session, lease, client = await rig.driven()
        await client.ask("push_action", action={"move": "left"}, edge="press")
        client.attachment.detach()
        assert ReleaseKeys(lease.session) in lease.sent
        lease.sent.clear()
        second = rig.attach(session)
        await second.ask("push_action", action={"move": "left"}, edge="press")
        rig.attach(session)
        assert ReleaseKeys(lease.session) in lease.sent


async def test_a_release_is_accepted_where_no_other_command_has_room() -> None:
    async with session_rig(SessionLimits(pending_commands=4)) as rig:
        _, lease, client = await rig.driven()
        lease.answering.clear()
        client.submit("pause")
        await until(lambda: lease.asked)
        presses = [
            client.submit("push_action", action={"move": "left"}, edge="press") for _ in range(6)
        ]
        release = client.submit("push_action", action={"move": "left"}, edge="release")
        lease.answering.set()
        await until(lambda: ReleaseKeys(lease.session) in lease.sent)
        await client.ask("release_all")
        answers = {
            event.command: event
            for event in client.events
            if isinstance(event, RequestAccepted | Error)
        }
        refused = [answers[id] for id in presses[4:]]
        assert all(isinstance(each, Error) and each.code == "too_many" for each in refused)
        assert isinstance(answers[release], RequestAccepted)
        last_push = max(i for i, each in enumerate(lease.sent) if isinstance(each, PushInputs))
        assert lease.sent.index(ReleaseKeys(lease.session)) > last_push


async def test_a_burst_is_bounded_and_every_control_is_accounted_for() -> None:
    async with session_rig(SessionLimits(pending_controls=100)) as rig:
        _, lease, client = await rig.driven()
        ids = [client.submit("update", parameters={"speed": 1.0}) for _ in range(200)]
        last = await client.ask("release_all")
        assert isinstance(last, RequestAccepted)
        lease.put_out_chunk()
        await client.chunk()
        fates = {
            (event.control if isinstance(event, ControlApplied) else event.command)
            for event in client.events
            if isinstance(event, ControlApplied | Error)
        }
        assert set(ids) <= fates
        assert client.types().count("session.updated") < 10


async def test_snapshots_over_the_limit_are_refused_without_asking_the_loop() -> None:
    async with session_rig() as rig:
        session, lease, client = await rig.driven()
        for name in range(8):
            assert isinstance(await client.ask("snapshot", name=f"s{name}"), RequestAccepted)
        lease.answering.clear()  # the loop is busy, and stays so
        refused = await client.ask("snapshot", name="another")
        assert isinstance(refused, Error)
        assert (refused.code, refused.field) == ("snapshot_limit", "name")
        assert len(lease.asked) == 8
        lease.answering.set()
        assert isinstance(await client.ask("snapshot", name="s0"), RequestAccepted), (
            "it has a place"
        )
        lease.say(WorkerLost(session.id, "killed"))
        lease.say(SessionRecovered(session.id, 0, 0))  # some may be lost: the new worker decides
        assert isinstance(await client.ask("snapshot", name="another"), RequestAccepted)


async def test_pausing_twice_asks_once_and_stepping_needs_a_pause() -> None:
    async with session_rig() as rig:
        session, lease, client = await rig.driven()
        step = await client.ask("step")
        assert isinstance(step, Error)
        assert step.code == "not_paused"
        for command in ("pause", "pause", "step", "resume", "resume", "resume"):
            assert isinstance(await client.ask(command), RequestAccepted)
        assert [type(each).__name__ for each in lease.asked] == ["Pause", "Advance", "Resume"]
        assert session.state.phase is SessionPhase.ACTIVE


async def test_a_paused_session_is_still_paused_after_a_rejoin() -> None:
    async with session_rig() as rig:
        session, _, client = await rig.driven()
        await client.ask("pause")
        client.attachment.detach()
        assert session.view.state == "detached"
        second = rig.attach(session)
        attached = await second.until("session.attached")
        assert isinstance(attached, SessionAttached)
        assert attached.view.state == "paused"


async def test_releases_without_room_release_every_key() -> None:
    async with session_rig(SessionLimits(pending_controls=4)) as rig:
        _, lease, client = await rig.driven()
        for _ in range(3):
            await client.ask("push_action", action={"move": "left"}, edge="press")
        refused = await client.ask("push_action", action={"move": "left"}, edge="press")
        assert isinstance(refused, Error)
        assert refused.code == "too_many"
        released = await client.ask("push_action", action={"move": "left"}, edge="release")
        assert isinstance(released, RequestAccepted)
        assert lease.sent[-1] == ReleaseKeys(lease.session)
        receipts = [event for event in client.events if isinstance(event, ControlSuperseded)]
        assert [each.control for each in receipts] == [released.command]
