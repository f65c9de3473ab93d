"""Programs whose text is spoken: the real pool, a model that talks, and a voice of the host."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
import talking_stub
from session_suite import StreamViewer, looking
from text_suite import LONG

from reverie.config import Deployment
from reverie.gpu_pool.wire.options import ModelOptions, PoolOptions
from reverie.host import Engine
from reverie.sessions import BadRequestError
from reverie.sessions.protocol.errors import VoiceError
from reverie.sessions.protocol.events import AnyEvent
from reverie.sessions.protocol.media_events import MediaChunk, MediaInit, TextDelta
from reverie.sessions.streams.speech_stream import AHEAD_US
from reverie.sessions.streams.voice_options import VoiceOptions


def deployment(voice: VoiceOptions | None = None) -> Deployment:
    models = (ModelOptions(name="talking", family=talking_stub.LOCATION, sessions=2),)
    return Deployment(pool=PoolOptions(mode="inline", models=models), voice=voice or VoiceOptions())


@asynccontextmanager
async def speaking() -> AsyncIterator[Engine]:
    async with Engine.from_deployment(deployment(VoiceOptions(engine="espeak"))) as engine:
        yield engine


def spoken(events: list[AnyEvent]) -> list[MediaChunk]:
    return [each for each in events if isinstance(each, MediaChunk) and each.stream == "voice"]


async def until_spoken(screen: StreamViewer, count: int) -> None:
    while len(spoken(screen.events)) < count:
        await screen.take()


async def test_what_the_model_says_is_heard_in_step_with_its_pictures() -> None:
    async with speaking() as engine:
        session = engine.session(program="narrated_world", prompt="a lake", voice=True)
        async with session as talking, looking(talking) as screen:
            await until_spoken(screen, 50)
            sound = [talking.samples(each) for each in spoken(screen.events)]
    [init] = [
        each for each in screen.events if isinstance(each, MediaInit) and each.stream == "voice"
    ]
    assert (init.kind, init.rate_hz, init.channels) == ("audio", 22_050.0, 1)
    assert np.abs(np.concatenate(sound)).max() > 3000
    chunk_us = 500_000
    shown_us = 0
    for event in screen.events:
        if isinstance(event, MediaChunk) and event.stream == "video":
            shown_us = event.pts_us
        if isinstance(event, MediaChunk) and event.stream == "voice":
            assert event.pts_us <= shown_us + AHEAD_US + 2 * chunk_us


async def test_an_interrupt_of_the_narrator_cuts_what_is_unsaid() -> None:
    async with speaking() as engine:
        session = engine.session(program="chat", prompt="a lake", voice=True)
        async with session as talking, looking(talking) as screen:
            await talking.push_text(LONG, mode="turn")
            await until_spoken(screen, 20)
            await talking.interrupt(loop="ar_decode")
            while not (isinstance(event := await screen.take(), TextDelta) and event.cut):
                pass
            at = len(screen.events)
            for _ in range(4):
                await screen.chunk()
            silent = spoken(screen.events[at:])
            await talking.push_text("and again", mode="turn")
            count = len(spoken(screen.events))
            await until_spoken(screen, count + 5)
            again = spoken(screen.events)[count:]
    assert silent == []
    assert again[0].discontinuity


async def test_a_session_that_asks_for_no_voice_has_none() -> None:
    async with speaking() as engine:
        session = engine.session(program="narrated_world", prompt="a lake")
        async with session as talking, looking(talking) as screen:
            await screen.until("text.delta")
            for _ in range(3):
                await screen.chunk()
    assert spoken(screen.events) == []


async def test_a_request_for_a_voice_is_refused_where_there_is_none() -> None:
    async with Engine.from_deployment(deployment()) as engine:
        with pytest.raises(BadRequestError) as refused:
            async with engine.session(program="chat", voice=True):
                pass
    assert (refused.value.code, refused.value.field) == ("not_enabled", "voice")


async def test_a_program_that_says_nothing_has_no_voice() -> None:
    async with speaking() as engine:
        with pytest.raises(BadRequestError) as refused:
            async with engine.session(program="world", voice=True):
                pass
    assert (refused.value.code, refused.value.field) == ("not_enabled", "voice")


async def test_a_server_whose_voice_is_not_on_the_host_does_not_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    engine = Engine(deployment(VoiceOptions(engine="espeak")))
    with pytest.raises(VoiceError, match=r"voice\.engine is espeak, but there is no espeak-ng"):
        await engine.start()
