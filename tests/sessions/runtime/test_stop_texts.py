"""Texts that end an answer, and what is told of dropped messages: a language model in process."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import stub_model
from session_rig import session_rig
from session_suite import StreamViewer, looking

from reverie.config import Deployment
from reverie.gpu_pool.wire.options import ModelOptions, PoolOptions
from reverie.host import Engine
from reverie.models.causal_lm.config import RANDOM
from reverie.sessions.protocol.errors import BadRequestError
from reverie.sessions.protocol.events import ControlApplied
from reverie.sessions.protocol.media_events import TextDelta


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    models = (
        ModelOptions(name="lm", family="causal_lm", checkpoint=RANDOM, sessions=2, context=256),
        ModelOptions(name="stub", family=stub_model.LOCATION),
    )
    deployment = Deployment(pool=PoolOptions(mode="inline", models=models))
    async with Engine.from_deployment(deployment) as engine:
        yield engine


async def answer(screen: StreamViewer, turn: str) -> str:
    """Return the whole answer to a turn."""
    told = ""
    while True:
        delta = await screen.until("text.delta")
        assert isinstance(delta, TextDelta)
        told += delta.text if delta.answers == turn else ""
        if delta.answers == turn and delta.final:
            return told


async def asked(engine: Engine, text: str, **fields: Any) -> str:
    async with (
        engine.session(model="lm", seed=7, parameters={"longest": 20}, **fields) as session,
        looking(session) as screen,
    ):
        return await answer(screen, await session.push_text(text, mode="turn"))


async def test_an_answer_is_said_up_to_a_text_that_its_session_has_named(engine: Engine) -> None:
    whole = await asked(engine, "hello")
    stop = whole[5:8]
    assert await asked(engine, "hello", stop=["never said", stop]) == whole[: whole.find(stop)]


async def test_a_fork_ends_its_answers_at_the_same_texts() -> None:
    async with session_rig() as rig:
        first = await rig.open(program="talk", stop=("###",))
        assert rig.lease(first.session).opening.stop == ("###",)
        assert first.session.state.stop == ("###",)


async def test_a_client_that_says_more_than_is_read_is_told_what_was_dropped(
    engine: Engine,
) -> None:
    async with (
        engine.session(model="lm", parameters={"longest": 20}) as session,
        looking(session) as screen,
    ):
        dropped = 0
        for number in range(5):
            turn = await session.push_text(f"{number} " + "z" * 60, mode="turn")
            await answer(screen, turn)
            receipt = screen.receipt(turn)
            assert isinstance(receipt, ControlApplied)
            dropped += receipt.dropped_messages
        assert dropped >= 3


@pytest.mark.parametrize(
    ("stop", "code", "field"),
    [
        (("x",) * 17, "too_many", "stop"),
        (("x", ""), "out_of_range", "stop.1"),
        (("x" * 65,), "out_of_range", "stop.0"),
        ((7,), "wrong_type", "stop.0"),
    ],
)
async def test_what_is_no_text_to_stop_at_is_refused(
    engine: Engine, stop: Any, code: str, field: str
) -> None:
    with pytest.raises(BadRequestError) as refused:
        async with engine.session(model="lm", stop=stop):
            pass
    assert (refused.value.code, refused.value.field) == (code, field)


async def test_a_program_without_turns_has_nothing_to_stop(engine: Engine) -> None:
    with pytest.raises(BadRequestError) as refused:
        async with engine.session(model="stub", stop=("x",)):
            pass
    assert (refused.value.code, refused.value.field) == ("not_enabled", "stop")
