"""Text of a session: which clients get it, from where on, and how it breaks off."""

import asyncio

from fake_pool import FakeLease
from session_rig import Client, Rig, assert_well_formed, session_rig
from waiting import until

from reverie.engine.emissions import ControlApplied, ControlSuperseded
from reverie.engine.inputs import OPENING, PromptInput, TurnInput
from reverie.gpu_pool.wire import session_messages as messages
from reverie.gpu_pool.wire.notifications import SessionRecovered, WorkerLost
from reverie.gpu_pool.wire.session_messages import PushInputs
from reverie.sessions.attachments.attachment import Role
from reverie.sessions.protocol import events
from reverie.sessions.protocol.commands import Interrupt
from reverie.sessions.protocol.events import Error, RequestAccepted, SessionInterrupted
from reverie.sessions.protocol.media_events import TextDelta
from reverie.sessions.runtime.server_session import ServerSession
from reverie.sessions.state.limits import SessionLimits


async def talking(rig: Rig) -> tuple[ServerSession, FakeLease, Client]:
    """Open a session of the program that talks, and attach a driver."""
    session = (await rig.open(program="talk")).session
    await until(lambda: session.state.phase in ("active", "detached"))
    return session, rig.lease(session), rig.attach(session)


async def word(client: Client) -> TextDelta:
    event = await client.until("text.delta")
    assert isinstance(event, TextDelta)
    return event


# --- who hears what ---


async def test_every_client_gets_every_word() -> None:
    async with session_rig() as rig:
        session, lease, driver = await talking(rig)
        viewer = rig.attach(session, Role.VIEWER)
        lease.speak("A lake ")
        lease.speak("lies ahead. ", final=True)
        for client in (driver, viewer):
            heard = [await word(client), await word(client)]
            assert [(each.text, each.utterance, each.final) for each in heard] == [
                ("A lake ", 0, False),
                ("lies ahead. ", 0, True),
            ]
            assert_well_formed(client)


async def test_a_late_client_gets_the_newest_utterance_from_its_beginning() -> None:
    async with session_rig() as rig:
        session, lease, _ = await talking(rig)
        lease.speak("It is night. ", final=True)
        lease.speak("A lake ")
        lease.speak("lies ")
        late = rig.attach(session, Role.VIEWER)
        lease.speak("ahead. ", final=True)
        heard = [await word(late), await word(late)]
        assert [(each.text, each.utterance) for each in heard] == [
            ("A lake lies ", 1),
            ("ahead. ", 1),
        ]
        later = rig.attach(session, Role.VIEWER)
        whole = await word(later)
        assert (whole.text, whole.final) == ("A lake lies ahead. ", True)


async def test_an_answer_names_the_command_that_asked() -> None:
    async with session_rig() as rig:
        _, lease, client = await talking(rig)
        await client.ask("push_text", text=" where? ", mode="turn")
        [turn] = [item for item in lease.sent if isinstance(item, PushInputs)][-1].inputs
        assert isinstance(turn, TurnInput)
        assert turn.text == "where?"
        lease.say(ControlApplied(lease.session, turn.control, 3, 0, 7))
        lease.speak("Here. ", final=True, answers=turn.control)
        receipt = await client.until("control.applied")
        answer = await word(client)
        assert isinstance(receipt, events.ControlApplied)
        assert answer.answers == receipt.control
        lease.speak("Unasked. ", final=True)
        assert (await word(client)).answers is None


async def test_turns_that_have_their_receipt_make_room_for_more() -> None:
    async with session_rig(SessionLimits(pending_turns=2)) as rig:
        _, lease, client = await talking(rig)
        for _ in range(2):
            assert isinstance(
                await client.ask("push_text", text="hm", mode="turn"), RequestAccepted
            )
        refused = await client.ask("push_text", text="hm", mode="turn")
        assert isinstance(refused, Error)
        assert (refused.code, refused.retry_after_s) == ("too_many", 1.0)
        first = lease.waiting_controls()[0]
        lease.say(ControlSuperseded(lease.session, first, None))
        assert isinstance(await client.ask("push_text", text="hm", mode="turn"), RequestAccepted)


# --- breaking off ---


async def test_an_interrupted_utterance_ends_with_a_word_of_it_and_nothing_old_follows() -> None:
    async with session_rig() as rig:
        session, lease, driver = await talking(rig)
        viewer = rig.attach(session, Role.VIEWER)
        lease.speak("A lake ")
        lease.speak("lies ")
        assert (await word(driver)).text == "A lake "
        lease.delivering.clear()
        async with asyncio.TaskGroup() as tasks:
            command = Interrupt(id="i", loop="ar_decode")
            tasks.create_task(driver.attachment.request(command))
            await until(lambda: lease.asked)
            [request] = lease.asked
            assert isinstance(request, messages.Interrupt)
            assert (request.loop, request.seen) == ("ar_decode", None)
            lease.utterance = 0
            lease.speak("ahead. ", final=True)  # was on its way
            lease.delivering.set()
        cut = await word(driver)
        assert (cut.text, cut.cut, cut.final, cut.utterance) == ("", True, True, 0)
        lease.speak("A forest. ", final=True)
        fresh = await word(driver)
        assert (fresh.text, fresh.utterance, fresh.cut) == ("A forest. ", 1, False)
        heard = [await word(viewer) for _ in range(2)]
        assert [(each.text, each.cut) for each in heard] == [("", True), ("A forest. ", False)]
        assert not any(isinstance(each, SessionInterrupted) for each in driver.events)


async def test_silence_that_is_interrupted_says_nothing() -> None:
    async with session_rig() as rig:
        _, lease, driver = await talking(rig)
        lease.speak("A lake. ", final=True)
        await word(driver)
        assert isinstance(await driver.ask("interrupt", loop="ar_decode"), RequestAccepted)
        lease.speak("A forest. ", final=True)
        assert (await word(driver)).text == "A forest. "


async def test_an_interrupt_of_everything_cuts_words_and_pictures_and_names_the_loops() -> None:
    async with session_rig() as rig:
        _, lease, driver = await talking(rig)
        lease.put_out_chunk()
        await driver.chunk()
        lease.speak("A lake ")
        await word(driver)
        driver.submit("interrupt")
        assert (await word(driver)).cut
        told = await driver.until("session.interrupted")
        assert isinstance(told, SessionInterrupted)
        assert told.loops == ("world_model", "ar_decode")


async def test_the_world_alone_is_interrupted_and_the_voice_continues() -> None:
    async with session_rig() as rig:
        _, lease, driver = await talking(rig)
        lease.put_out_chunk()
        await driver.chunk()
        lease.speak("A lake ")
        await word(driver)
        driver.submit("interrupt", loop="world_model")
        told = await driver.until("session.interrupted")
        assert isinstance(told, SessionInterrupted)
        assert told.loops == ("world_model",)
        lease.utterance = 0
        lease.speak("lies ahead. ", final=True)
        assert (await word(driver)).text == "lies ahead. "


async def test_a_loop_that_is_not_there_cannot_be_interrupted() -> None:
    async with session_rig() as rig:
        _, lease, driver = await talking(rig)
        refused = await driver.ask("interrupt", loop="nobody")
        assert isinstance(refused, Error)
        assert (refused.code, refused.field) == ("unknown_loop", "loop")
        assert not lease.asked


async def test_a_lost_worker_and_a_restarted_voice_end_the_utterance() -> None:
    async with session_rig() as rig:
        session, lease, driver = await talking(rig)
        lease.speak("A lake ")
        await word(driver)
        lease.fail_step(fatal=False, loop="ar_decode", restarted=True)
        error = await driver.until("error")
        assert isinstance(error, Error)
        assert (error.code, error.loop) == ("non_finite", "ar_decode")
        assert (await word(driver)).cut
        lease.utterance = 1
        lease.speak("A lake ")
        await word(driver)
        lease.say(WorkerLost(session.id, "gone"))
        assert (await word(driver)).cut
        lease.say(SessionRecovered(session.id, -1, 0))
        assert not session.state.over


async def test_a_voice_that_is_given_up_costs_the_session_nothing() -> None:
    async with session_rig() as rig:
        session, lease, driver = await talking(rig)
        lease.fail_step(fatal=True, loop="ar_decode")
        codes = [(await driver.until("error")).code for _ in range(2)]  # type: ignore[union-attr]
        assert codes == ["non_finite", "loop_ended"]
        lease.put_out_chunk()
        await driver.chunk()
        assert not session.state.over


async def test_the_session_s_end_breaks_a_word_off_before_its_last_event() -> None:
    async with session_rig() as rig:
        session, lease, driver = await talking(rig)
        lease.speak("A lake ")
        await word(driver)
        session.end("closed")
        await driver.until_end()
        assert driver.types()[-2:] == ["text.delta", "session.closed"]


# --- slow listeners ---


async def test_a_client_that_takes_nothing_is_ended_and_loses_no_word_silently() -> None:
    async with session_rig(SessionLimits(outbox_events=16)) as rig:
        session, lease, driver = await talking(rig)
        slow = rig.attach(session, Role.VIEWER)
        for number in range(40):
            lease.speak(f"{number} ")
            await word(driver)
        assert await slow.until_end() == "slow_viewer"
        texts = [event.text for event in slow.events if isinstance(event, TextDelta)]
        assert texts == [f"{number} " for number in range(len(texts))]


# --- the opening ---


async def test_the_first_driver_is_told_what_became_of_the_opening_prompt() -> None:
    async with session_rig() as rig:
        session = (await rig.open("a blargy lake")).session
        await until(lambda: session.state.phase == "detached")
        lease = rig.lease(session)
        viewer = rig.attach(session, Role.VIEWER)
        lease.say(ControlApplied(lease.session, OPENING, 0, 0, 0, ("blargy",)))
        driver = rig.attach(session)
        receipt = await driver.until("control.applied")
        assert isinstance(receipt, events.ControlApplied)
        assert (receipt.control, receipt.unknown_words) == ("opening", ("blargy",))
        again = rig.attach(session)
        lease.put_out_chunk()
        for client in (viewer, again):
            await client.chunk()
            assert "control.applied" not in client.types()
        assert await driver.until_end() == "replaced"


async def test_an_opening_prompt_that_another_replaced_says_which() -> None:
    async with session_rig() as rig:
        session, lease, driver = await talking(rig)
        command = driver.submit("push_text", text="a city")
        await until(lambda: any(isinstance(each, PushInputs) for each in lease.sent))
        [item] = [each for each in lease.sent if isinstance(each, PushInputs)][-1].inputs
        assert isinstance(item, PromptInput)
        lease.say(ControlSuperseded(lease.session, OPENING, item.control))
        told = await driver.until("control.superseded")
        assert isinstance(told, events.ControlSuperseded)
        assert (told.control, told.by) == ("opening", command)
        await asyncio.sleep(0)
        assert session.view.prompt == "a city"


async def test_a_program_s_own_parameters_are_its_defaults() -> None:
    async with session_rig() as rig:
        session, lease, _ = await talking(rig)
        [speed, _] = session.view.parameters
        assert (speed.name, speed.value, speed.default) == ("speed", 3.0, 3.0)
        assert lease.opening.parameters["speed"] == 3.0
        assert session.view.takes_turns
        assert [(each.name, each.kind, each.loop) for each in session.view.streams] == [
            ("video", "video", "world_model"),
            ("narration", "text", "ar_decode"),
        ]
