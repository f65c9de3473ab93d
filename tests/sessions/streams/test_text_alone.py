"""A program of text and nothing else, in this process."""

from collections.abc import AsyncIterator
from pathlib import Path

import echo_model
import pytest
from session_suite import looking
from text_suite import said, words

from reverie.config import Deployment
from reverie.gpu_pool.wire.options import ModelOptions, PoolOptions
from reverie.host import Engine
from reverie.sessions.protocol.errors import CommandError
from reverie.sessions.protocol.events import SessionInterrupted

LOCATION = f"{Path(echo_model.__file__).resolve()}:EchoFamily"


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    models = (ModelOptions(name="echo", family=LOCATION, sessions=2),)
    deployment = Deployment(pool=PoolOptions(mode="inline", models=models))
    async with Engine.from_deployment(deployment) as engine:
        yield engine


async def test_it_talks_pauses_and_is_interrupted(engine: Engine) -> None:
    async with engine.session() as session, looking(session) as screen:
        assert [stream.kind for stream in session.view.streams] == ["text"]
        await session.push_text("hello there", mode="turn")
        assert (await said(screen, "hello there")).utterance == 0
        await session.pause()
        turn = await session.push_text("and again", mode="turn")
        await screen.quiet()
        assert set(words(screen.events)) == {0}
        await session.resume()
        await said(screen, "and again")
        assert screen.receipt(turn) is not None
        await session.interrupt()
        told = await screen.until("session.interrupted")
        assert isinstance(told, SessionInterrupted)
        assert told.loops == ("ar_decode",)
        await session.push_text("once more", mode="turn")
        await said(screen, "once more")
        with pytest.raises(CommandError) as caught:
            await session.push_action({"move": "left"})
        assert caught.value.code == "unknown_control"


async def test_it_starts_again_and_ends(engine: Engine) -> None:
    async with engine.session() as session, looking(session) as screen:
        await session.push_text("one", mode="turn")
        first = await said(screen, "one")
        await session.reset()
        await session.push_text("two", mode="turn")
        assert (await said(screen, "two")).utterance > first.utterance
        await session.close()
        events = await screen.rest()
        assert events[-1].type == "session.closed"
    assert engine.pool.status["echo"].busy == 0
