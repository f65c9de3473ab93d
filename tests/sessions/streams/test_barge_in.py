"""Speech of a client is told; the narrator stops for it when the session enables barge-in."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import numpy as np
import pytest
import talking_stub
from speaking import RATE_HZ, Sound, music, noise, silence, speech
from text_suite import LONG
from waiting import until

from reverie.config import Deployment
from reverie.gpu_pool.wire.options import ModelOptions, PoolOptions
from reverie.host import Engine
from reverie.media.audio import voice_activity
from reverie.sessions import CommandError, LocalSession
from reverie.sessions.protocol.events import AnyEvent
from reverie.sessions.protocol.media_events import TextDelta, TurnEnded, TurnStarted

LIMIT_S = 40.0


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    models = (ModelOptions(name="stub", family=talking_stub.LOCATION),)
    deployment = Deployment(pool=PoolOptions(mode="inline", models=models))
    async with Engine.from_deployment(deployment) as running:
        yield running


async def push(session: LocalSession, sound: Sound) -> None:
    step = RATE_HZ // 25
    for start in range(0, len(sound), step):
        at_us = round(start * 1e6 / RATE_HZ)
        await session.push_audio(sound[start : start + step], RATE_HZ, pts_us=at_us)


async def conversation(
    engine: Engine, sound: Sound, barge_in: bool, word_ms: float, turns: int
) -> list[AnyEvent]:
    """Have something long said, and push sound meanwhile; return all until it is over.

    Args:
        engine: where.
        sound: what is pushed.
        barge_in: whether the session asks for it.
        word_ms: how slowly the model speaks.
        turns: events of turns to wait for.
    """
    parameters = {"word_ms": word_ms, "yields": float(barge_in)}
    events: list[AnyEvent] = []
    keep = events.append
    async with engine.session(program="chat", prompt="a lake", parameters=parameters) as session:

        async def listen() -> None:
            async with aclosing(session.stream()) as stream:
                async for event in stream:
                    keep(event)

        async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(listen())
            asked = await session.push_text(LONG, mode="turn")
            await until(lambda: any(isinstance(event, TextDelta) for event in events))
            await push(session, sound)
            await until(
                lambda: any(
                    isinstance(event, TextDelta) and event.answers == asked and event.final
                    for event in events
                )
            )
            await until(lambda: len(turns_of(events)) >= turns)
            listening.cancel()
    return events


def turns_of(events: list[AnyEvent]) -> list[TurnStarted | TurnEnded]:
    return [event for event in events if isinstance(event, TurnStarted | TurnEnded)]


def words(events: list[AnyEvent]) -> int:
    return sum(len(event.text.split()) for event in events if isinstance(event, TextDelta))


SENTENCE = (silence(0.3), speech(), silence(1.2))


async def test_a_client_that_speaks_interrupts_the_utterance(engine: Engine) -> None:
    events = await conversation(engine, _joined(*SENTENCE), True, word_ms=1000.0, turns=1)
    [began] = [event for event in events if isinstance(event, TurnStarted)]
    assert (began.stream, began.interrupts) == ("microphone", True)
    assert words(events) < len(LONG.split())


async def test_without_barge_in_the_turn_is_told_and_the_narrator_continues(engine: Engine) -> None:
    events = await conversation(engine, _joined(*SENTENCE), False, word_ms=10.0, turns=2)
    [began] = [event for event in events if isinstance(event, TurnStarted)]
    [ended] = [event for event in events if isinstance(event, TurnEnded)]
    assert not began.interrupts
    assert ended.pts_us > began.pts_us
    assert words(events) >= len(LONG.split())


async def test_noise_and_music_do_not_interrupt(engine: Engine) -> None:
    events = await conversation(
        engine, _joined(noise(1.5), music(1.5)), True, word_ms=10.0, turns=0
    )
    assert not turns_of(events)
    assert words(events) >= len(LONG.split())


async def test_without_the_package_the_push_is_refused_and_says_what_to_install(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(voice_activity, "_WEIGHTS", "silero_vad/data/none.safetensors")
    voice_activity.weights.cache_clear()
    async with engine.session(program="chat") as session:
        with pytest.raises(CommandError, match=r"'\.\[vad\]'") as refused:
            await session.push_audio(silence(0.1), RATE_HZ)
        assert refused.value.code == "not_installed"
        await session.push_text("hello", mode="turn")


def _joined(*sounds: Sound) -> Sound:
    return np.concatenate(sounds)
