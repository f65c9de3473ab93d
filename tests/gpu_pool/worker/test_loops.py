"""Two loops of one session through the pool: a world, and a narrator of what it shows."""

import os
import signal

import pytest
import talking_stub
from pool_rig import Viewer, prompt, running, worker_pid
from stub_model import prompt_mark

from reverie.engine.emissions import TextOut
from reverie.engine.inputs import ControlId, TurnInput
from reverie.gpu_pool import Notification, RequestRefusedError, SessionRecovered
from reverie.gpu_pool.wire.session_messages import (
    Interrupt,
    PushInputs,
    RestoreSnapshot,
    TakeSnapshot,
)

LAKE = f"I see p{prompt_mark('a frozen lake')} with nothing held. "
CITY = f"I see p{prompt_mark('a city')} with nothing held. "
LONG = " ".join(f"word{number}" for number in range(200))


def say(session: str, control: str, text: str) -> PushInputs:
    return PushInputs(session, (TurnInput(ControlId(control), text),))


def utterances(notices: list[Notification]) -> dict[int, str]:
    """Return what was said, by the number of the utterance."""
    told: dict[int, str] = {}
    for notice in notices:
        if isinstance(notice, TextOut):
            told[notice.chunk] = told.get(notice.chunk, "") + notice.text
    return told


async def until_said(viewer: Viewer, text: str) -> None:
    """Wait for an utterance that holds a text."""
    await viewer.until(
        lambda notices: any(text in said for said in utterances(notices).values()) or None
    )


async def test_frames_and_words_come_side_by_side() -> None:
    viewer = Viewer("a", "narrated_world")
    async with running("inline", family=talking_stub.LOCATION) as pool, viewer.watching(pool):
        assert viewer.lease
        await until_said(viewer, LAKE)
        viewer.lease.send(prompt("a", "p", "a city"))
        await until_said(viewer, CITY)
    assert [out.header.chunk for out in viewer.frames] == list(range(len(viewer.frames)))
    last = viewer.texts[-1]
    assert (last.stream, last.loop, last.final) == ("narration", "ar_decode", True)


async def test_a_loop_that_speaks_at_a_pace_is_woken_by_the_clock_alone() -> None:
    viewer = Viewer("a", "chat")
    viewer.sees = False  # so that nothing else happens in the worker
    async with (
        running("inline", family=talking_stub.LOCATION) as pool,
        viewer.watching(pool, pace=20) as lease,
    ):
        lease.send(say("a", "t", "one two three four"))
        await until_said(viewer, "You said one two three four")


async def test_an_interrupt_names_its_loop_and_the_answer_says_what_is_new() -> None:
    viewer = Viewer("a", "chat")
    async with (
        running("inline", family=talking_stub.LOCATION) as pool,
        viewer.watching(pool, word_ms=50) as lease,
    ):
        lease.send(say("a", "t", LONG))
        await viewer.hears(TextOut, 3)
        done = await lease.ask(Interrupt(0, "a", None, "ar_decode"))
        assert done.utterances == {"ar_decode": 1}
        with pytest.raises(RequestRefusedError) as caught:
            await lease.ask(Interrupt(0, "a", None, "nobody"))
        assert caught.value.code == "unknown_loop"
    assert set(utterances(viewer.notices)) == {0}


@pytest.mark.timeout(150)
async def test_the_text_of_a_lost_worker_continues_with_its_numbers() -> None:
    viewer = Viewer("a", "narrated_world")
    async with (
        running("process", family=talking_stub.LOCATION) as pool,
        viewer.watching(pool, step_ms=5) as lease,
    ):
        await until_said(viewer, LAKE)
        done = await lease.ask(TakeSnapshot(0, "a", "here"))
        assert {durable.loop for durable in done.durables} == {"world_model", "ar_decode"}
        os.kill(worker_pid(pool), signal.SIGKILL)
        lease.send(say("a", "t", "are you there"))  # said while there is no worker
        recovered = await viewer.hears(SessionRecovered)
        assert recovered.chunk >= 0
        await until_said(viewer, "You said are you there")
        told = [out for out in viewer.texts if out.answers == "t"]
        assert {out.chunk for out in told}.isdisjoint({0})
        done = await lease.ask(RestoreSnapshot(0, "a", "here"))
        assert done.chunk >= 0
        lease.send(prompt("a", "p", "a city"))
        await until_said(viewer, CITY)
