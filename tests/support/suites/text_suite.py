"""What every `Session` must do in a program that talks, with the talking stub.

Used like `session_suite.SessionSuite`; the service runs `talking_stub.LOCATION`.
"""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

import pytest
from session_suite import StreamViewer, assert_well_formed, looking
from stub_model import Fault, prompt_mark

from reverie.sessions.client.session import Session
from reverie.sessions.protocol.errors import CommandError
from reverie.sessions.protocol.events import AnyEvent, ControlApplied, Error, SessionInterrupted
from reverie.sessions.protocol.media_events import MediaChunk, TextDelta

LAKE = f"I see p{prompt_mark('a lake')} with nothing held. "
LONG = " ".join(f"word{number}" for number in range(40))
SLOW = {"word_ms": 200.0}
"""Eight seconds for `LONG`, so that an interrupt comes in the middle of it, however busy we are."""


class TalkingService(Protocol):
    """Something that opens sessions of the talking stub."""

    def session(
        self,
        *,
        program: str = "",
        prompt: str = "",
        parameters: dict[str, float] | None = None,
    ) -> AbstractAsyncContextManager[Session]:
        """Open a session, and end it with the block."""


def words(events: list[AnyEvent]) -> dict[int, str]:
    """Return what was said, by utterance."""
    told: dict[int, str] = {}
    for event in events:
        if isinstance(event, TextDelta):
            told[event.utterance] = told.get(event.utterance, "") + event.text
    return told


async def said(screen: StreamViewer, text: str) -> TextDelta:
    """Take events until an utterance that begins so has ended; return its last delta."""
    while True:
        event = await screen.until("text.delta")
        assert isinstance(event, TextDelta)
        if event.final and words(screen.events)[event.utterance].startswith(text):
            return event


class TextSuite:
    """The tests. Each opens sessions of its own."""

    async def test_words_come_beside_the_pictures_and_tell_what_changes(
        self, service: TalkingService
    ) -> None:
        async with (
            service.session(program="narrated_world", prompt="a lake") as session,
            looking(session) as screen,
        ):
            assert [(each.name, each.kind) for each in session.view.streams] == [
                ("video", "video"),
                ("narration", "text"),
            ]
            assert session.view.takes_turns
            first = await said(screen, LAKE)
            assert (first.stream, first.answers, first.cut) == ("narration", None, False)
            await session.push_action({"move": "left"}, edge="press")
            second = await said(screen, f"I see p{prompt_mark('a lake')} with left held.")
            assert second.utterance > first.utterance
            assert second.pts_us > first.pts_us
            frames = [event for event in screen.events if isinstance(event, MediaChunk)]
            assert [frame.index for frame in frames] == list(range(len(frames)))
            assert_well_formed(screen.events)

    async def test_a_question_is_answered_and_its_receipt_comes_before_the_first_word(
        self, service: TalkingService
    ) -> None:
        async with (
            service.session(program="chat", prompt="a lake") as session,
            looking(session) as screen,
        ):
            narrate = next(each for each in session.view.parameters if each.name == "narrate")
            assert (narrate.value, narrate.default) == (0.0, 0.0)
            await screen.chunk()
            await screen.chunk()
            assert words(screen.events) == {}, "no turn was asked"
            asked = [await session.push_text(text, mode="turn") for text in ("one", "two")]
            for turn, text in zip(asked, ("one", "two"), strict=True):
                answer = await said(screen, f"You said {text} under p{prompt_mark('a lake')}. ")
                assert answer.answers == turn
                receipt = screen.receipt(turn)
                assert isinstance(receipt, ControlApplied)
                first = next(
                    event
                    for event in screen.events
                    if isinstance(event, TextDelta) and event.answers == turn
                )
                assert screen.events.index(receipt) < screen.events.index(first)

    async def test_who_cannot_be_asked_says_so(self, service: TalkingService) -> None:
        async with service.session(program="world", prompt="a lake") as session:
            assert not session.view.takes_turns
            with pytest.raises(CommandError) as caught:
                await session.push_text("hello", mode="turn")
            assert (caught.value.code, caught.value.field) == ("no_turns", "mode")
        async with service.session(program="chat", prompt="a lake") as session:
            for text, code in (("  ", "out_of_range"), ("x" * 2001, "too_long")):
                with pytest.raises(CommandError) as caught:
                    await session.push_text(text, mode="turn")
                assert (caught.value.code, caught.value.field) == (code, "text")
            await session.pause()
            for number in range(8):
                await session.push_text(f"turn {number}", mode="turn")
            with pytest.raises(CommandError) as caught:
                await session.push_text("one too many", mode="turn")
            assert caught.value.code == "too_many"
            assert "pending_turns" in caught.value.message

    async def test_a_voice_is_broken_off_alone_and_the_pictures_go_on(
        self, service: TalkingService
    ) -> None:
        async with (
            service.session(program="chat", prompt="a lake", parameters=SLOW) as session,
            looking(session) as screen,
        ):
            await session.push_text(LONG, mode="turn")
            await screen.until("text.delta")
            await session.interrupt("ar_decode")
            last = await said(screen, "You ")
            assert (last.text, last.cut) == ("", True)
            assert "word39" not in words(screen.events)[last.utterance]
            await session.push_text("again", mode="turn")
            after = await said(screen, "You said again")
            assert (after.utterance, after.cut) == (last.utterance + 1, False)
            await screen.chunk()
            assert not any(isinstance(event, SessionInterrupted) for event in screen.events)
            frames = _chunks(screen.events)
            assert not any(frame.discontinuity for frame in frames)
            with pytest.raises(CommandError) as caught:
                await session.interrupt("nobody")
            assert (caught.value.code, caught.value.field) == ("unknown_loop", "loop")

    async def test_an_interrupt_of_everything_cuts_pictures_and_words(
        self, service: TalkingService
    ) -> None:
        async with (
            service.session(program="chat", prompt="a lake", parameters=SLOW) as session,
            looking(session) as screen,
        ):
            await screen.chunk()
            await session.push_text(LONG, mode="turn")
            await screen.until("text.delta")
            await session.interrupt()
            word = await screen.until("session.interrupted")
            assert isinstance(word, SessionInterrupted)
            assert word.loops == ("world_model", "ar_decode")
            spoken = [event for event in screen.events if isinstance(event, TextDelta)]
            assert spoken[-1].cut
            assert (await screen.frame()).event.discontinuity
            assert len(words(screen.events)) == 1, "what was broken off does not begin again"

    async def test_a_voice_that_fails_leaves_the_pictures_alone(
        self, service: TalkingService
    ) -> None:
        faults = {"talk_fault": float(Fault.RAISE), "talk_fault_always": 1.0}
        async with (
            service.session(
                program="narrated_world", prompt="a lake", parameters=faults
            ) as session,
            looking(session) as screen,
        ):
            while True:
                error = await screen.until("error")
                assert isinstance(error, Error)
                assert error.loop == "ar_decode"
                if error.code == "loop_ended":
                    break
                assert error.code == "step_raised"
            chunks = [(await screen.chunk())[0].event.chunk for _ in range(3)]
            assert chunks == [chunks[0], chunks[0] + 1, chunks[0] + 2]
            turn = await session.push_text("hello", mode="turn")
            while (receipt := screen.receipt(turn)) is None:
                await screen.take()
            assert receipt.type == "control.superseded"

    async def test_the_opening_prompt_has_a_receipt_that_names_unknown_words(
        self, service: TalkingService
    ) -> None:
        async with (
            service.session(program="world", prompt="a blargy lake") as session,
            looking(session) as screen,
        ):
            receipt = await screen.applied("opening")
            assert receipt.unknown_words == ("blargy",)
            frame = await screen.frame_at(receipt.pts_us)
            assert (frame.event.chunk, frame.stamp.prompt) == (0, prompt_mark("a blargy lake"))


def _chunks(events: list[AnyEvent]) -> list[MediaChunk]:
    return [event for event in events if isinstance(event, MediaChunk)]
