"""A model's text, spoken in step with its pictures."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from listening import tone

from reverie.media import AudioCodec, AudioFanout, Sound, SoundShape, SpeechError
from reverie.models.contract.spec import StreamKind
from reverie.sessions.attachments.attachment import Attachment, AttachOptions, CommandRequest, Role
from reverie.sessions.attachments.outbox import Outbox, OutboxLimits
from reverie.sessions.protocol.media_events import MediaChunk
from reverie.sessions.state.prompt_memory import PromptMemory
from reverie.sessions.state.session_state import SessionId, SessionState, StreamState
from reverie.sessions.streams.audio_stream import AudioStream
from reverie.sessions.streams.speech_stream import AHEAD_US, PAUSE_US, SpeechStream

LIMIT_S = 20.0
SHAPE = SoundShape(16_000, 1)


class ToneSpeech:
    """Speaks a second for every word; what has `!` in it cannot be spoken."""

    def __init__(self) -> None:
        self.shape = SHAPE
        self.spoken: list[str] = []
        self.may_speak = asyncio.Event()
        self.may_speak.set()

    async def say(self, text: str) -> Sound:
        self.spoken.append(text)
        await self.may_speak.wait()
        if "!" in text:
            raise SpeechError("too loud")
        return tone(440.0, len(text.split()), SHAPE.rate_hz)


class NullCommandSink:
    def submit(self, request: CommandRequest) -> None: ...

    def listening_changed(self, attachment: Attachment) -> None: ...

    def line_changed(self, attachment: Attachment) -> None: ...

    def detach(self, attachment: Attachment) -> None: ...


class SpeechRig:
    """A speech stream, and a client that listens to it."""

    def __init__(self, follows: bool) -> None:
        self.speech = ToneSpeech()
        self.failures: list[str] = []
        state = SessionState(SessionId("s"), "o", "m", "p", 7, PromptMemory(100))
        stream = StreamState("voice", StreamKind.AUDIO, float(SHAPE.rate_hz))
        self.fanout = AudioFanout(SHAPE.rate_hz, SHAPE.channels)
        self.sound = AudioStream(stream, state, self.fanout)
        self.voice = SpeechStream(self.sound, self.speech, "s", self.failures.append, follows)
        self.outbox = Outbox(
            "s", lambda: 0, OutboxLimits(packets=10_000), lambda: None, lambda _: None
        )
        options = AttachOptions(audio=AudioCodec.PCM16)
        self.sound.show(Attachment(0, Role.DRIVER, options, self.outbox, NullCommandSink()))

    async def heard(self) -> list[MediaChunk]:
        """Return what has been sent and not yet taken."""
        async with asyncio.timeout(LIMIT_S):
            await self.fanout.drain()
            taken = []
            while len(self.outbox):
                taken.append(await self.outbox.take())
        return [event for event in taken if isinstance(event, MediaChunk)]

    async def spoke(self, count: int) -> None:
        """Wait until so many phrases were spoken and their sound is there."""
        async with asyncio.timeout(LIMIT_S):
            while len(self.speech.spoken) < count:
                await asyncio.sleep(0)
            for _ in range(5):
                await asyncio.sleep(0)


@asynccontextmanager
async def rig(follows: bool = True) -> AsyncIterator[SpeechRig]:
    made = SpeechRig(follows)
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(made.voice.speak()), tasks.create_task(made.fanout.run())]
        yield made
        for task in running:
            task.cancel()


def seconds(chunks: list[MediaChunk]) -> float:
    return sum(chunk.duration_us for chunk in chunks) / 1e6


async def test_sound_goes_out_as_far_as_the_pictures_have_come_and_a_little_ahead() -> None:
    async with rig() as on:
        on.voice.pictures(1_000_000)
        on.voice.say("one two three. ", final=True)
        await on.spoke(1)
        first = await on.heard()
        assert first[0].pts_us == 1_000_000
        assert AHEAD_US <= seconds(first) * 1e6 <= AHEAD_US + 40_000
        on.voice.pictures(2_000_000)
        second = await on.heard()
        assert abs(seconds(second) - 1.0) <= 0.04
        on.voice.pictures(9_000_000)
        chunks = first + second + await on.heard()
    assert abs(seconds(chunks) - 3.0) < 0.001
    ends = [chunk.pts_us + chunk.duration_us for chunk in chunks]
    assert ends[:-1] == [chunk.pts_us for chunk in chunks[1:]]


async def test_phrases_follow_each_other_after_a_short_silence() -> None:
    async with rig() as on:
        on.voice.say("one. two. ", final=True)
        await on.spoke(2)
        on.voice.pictures(10_000_000)
        chunks = await on.heard()
    starts = [chunk.pts_us for chunk in chunks if chunk.discontinuity]
    assert starts[1] - starts[0] == 1_000_000 + PAUSE_US
    assert on.speech.spoken == ["one.", "two."]


async def test_an_interrupt_cuts_what_is_unsaid_at_once() -> None:
    async with rig() as on:
        on.voice.say("one two three. four. ", final=True)
        await on.spoke(2)
        on.voice.pictures(1_000_000)
        await on.heard()
        on.voice.pictures(2_000_000)  # on its way, and not yet sent
        on.voice.cancel_speech()
        on.voice.pictures(9_000_000)
        assert await on.heard() == []
        on.voice.say("five. ", final=True)
        await on.spoke(3)
        on.voice.pictures(10_500_000)
        after = await on.heard()
    assert after[0].pts_us == 9_000_000
    assert after[0].discontinuity
    assert abs(seconds(after) - 1.0) < 0.001


async def test_what_is_being_spoken_when_it_is_interrupted_is_never_heard() -> None:
    async with rig() as on:
        on.speech.may_speak.clear()
        on.voice.say("one two three. ", final=True)
        async with asyncio.timeout(LIMIT_S):
            while not on.speech.spoken:
                await asyncio.sleep(0)
        on.voice.cancel_speech()
        on.voice.say("four. ", final=True)
        on.speech.may_speak.set()
        await on.spoke(2)
        on.voice.pictures(10_000_000)
        chunks = await on.heard()
    assert abs(seconds(chunks) - 1.0) < 0.001


async def test_a_phrase_that_cannot_be_spoken_is_told_and_the_next_one_is() -> None:
    async with rig() as on:
        on.voice.say("loud! two. ", final=True)
        await on.spoke(2)
        on.voice.pictures(10_000_000)
        chunks = await on.heard()
    assert abs(seconds(chunks) - 1.0) < 0.001
    assert len(on.failures) == 1


async def test_while_the_pictures_are_paused_little_is_spoken_ahead() -> None:
    async with rig() as on:
        for number in range(30):
            on.voice.say(f"one two three four {number}. ", final=True)
        await on.spoke(3)
        assert len(on.speech.spoken) == 3  # ten seconds are enough
        assert seconds(await on.heard()) <= AHEAD_US / 1e6 + 0.04


async def test_without_pictures_it_speaks_freely() -> None:
    async with rig(follows=False) as on:
        on.voice.say("one two. ", final=True)
        await on.spoke(1)
        assert abs(seconds(await on.heard()) - 2.0) < 0.001


@pytest.mark.parametrize("text", ["", " ", ". "])
async def test_nothing_to_say_is_no_fault(text: str) -> None:
    async with rig() as on:
        on.voice.say(text, final=True)
        on.voice.pictures(1_000_000)
        await on.heard()
    assert on.failures == []
