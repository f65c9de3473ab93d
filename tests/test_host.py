"""The engine: from a deployment to sessions, and back to nothing."""

import asyncio
import os
import threading
from pathlib import Path

import pytest
from session_suite import looking
from stub_model import LOCATION

from reverie.config import Deployment, DeploymentError
from reverie.gpu_pool.wire.errors import ModelUnavailableError
from reverie.gpu_pool.wire.options import ModelOptions, PoolOptions
from reverie.host import Engine
from reverie.sessions.protocol.errors import BadRequestError, SessionEndedError, TooManyError
from reverie.sessions.state.limits import SessionLimits


def deployment(family: str = LOCATION, **pool: object) -> Deployment:
    models = (ModelOptions(name="stub", family=family, sessions=1),)
    options = PoolOptions.model_validate({"mode": "inline", "models": models, **pool})
    return Deployment(pool=options, sessions=SessionLimits(sessions=3))


async def test_an_engine_leaves_no_task_and_no_thread_behind() -> None:
    tasks = asyncio.all_tasks()
    for _ in range(2):
        async with Engine.from_deployment(deployment()) as engine:
            assert engine.ready
            async with engine.session(prompt="a lake") as session, looking(session) as screen:
                await screen.chunk()
        assert asyncio.all_tasks() == tasks
    for _ in range(200):
        if not [thread for thread in threading.enumerate() if thread.name.startswith("encode")]:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("an encoder's thread was left")


async def test_leaving_an_engine_ends_the_sessions_that_are_open() -> None:
    async with Engine.from_deployment(deployment()) as engine:
        context = engine.session(prompt="a lake")
        session = await context.__aenter__()
        stream = session.stream()
        await anext(stream)
        await engine.stop()
        events = [event async for event in stream]
        assert events[-1].type == "session.closed"
        assert events[-1].reason == "shutdown"
        await context.__aexit__(None, None, None)


async def test_draining_refuses_new_sessions_at_once() -> None:
    async with Engine.from_deployment(deployment()) as engine:
        await engine.drain(1.0)
        with pytest.raises(SessionEndedError):
            async with engine.session():
                pass


async def test_a_missing_model_is_reported_at_the_start() -> None:
    engine = Engine.from_deployment(deployment(family="nowhere.at.all:Model"))
    with pytest.raises(ModelUnavailableError):
        async with engine:
            pass


async def test_a_deployment_can_be_a_file(tmp_path: Path) -> None:
    file = tmp_path / "deployment.yaml"
    file.write_text(
        f"pool:\n  mode: inline\n  models:\n    - {{name: stub, family: '{LOCATION}'}}\n"
    )
    async with (
        Engine.from_deployment(file) as engine,
        engine.session(program="world") as session,
        looking(session) as screen,
    ):
        assert await screen.chunk()
    file.write_text("pool: 5\n")
    with pytest.raises(DeploymentError):
        Engine.from_deployment(str(file))


def test_an_engine_reads_what_serve_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, other = tmp_path / "deployment.yaml", tmp_path / "other.yaml"
    file.write_text("server: {port: 9001}\npool: {waiting_line: 3}\n")
    other.write_text("server: {port: 9002}\n")
    for name in [name for name in os.environ if name.startswith("REVERIE_")]:
        monkeypatch.delenv(name)
    assert Engine.from_deployment().deployment == Deployment()
    monkeypatch.setenv("REVERIE_CONFIG", str(file))
    monkeypatch.setenv("REVERIE_POOL__MODELS__0__THREADS", "2")
    monkeypatch.setenv("REVERIE_POOL__WAITING_LINE", "5")
    told = Engine.from_deployment().deployment
    assert (told.server.port, told.pool.waiting_line, told.pool.models[0].threads) == (9001, 5, 2)
    assert told == Deployment.of_process()
    named = Engine.from_deployment(other).deployment
    assert (named.server.port, named.pool.waiting_line) == (9002, 5)
    assert Engine.from_deployment(Deployment()).deployment == Deployment(), "given whole"
    monkeypatch.setenv("REVERIE_POOL__WAITING_LIN", "5")
    with pytest.raises(
        DeploymentError, match=r"did you mean waiting_line.*REVERIE_POOL__WAITING_LI"
    ):
        Engine.from_deployment()


async def test_a_wrong_argument_is_named() -> None:
    async with Engine.from_deployment(deployment()) as engine:
        for arguments, field in (
            ({"model": "nope"}, "model"),
            ({"program": "nope"}, "program"),
            ({"seed": -5}, "seed"),
            ({"parameters": {"nope": 1.0}}, "parameters.nope"),
        ):
            with pytest.raises(BadRequestError) as caught:
                async with engine.session(**arguments):
                    pass
            assert caught.value.field == field


async def test_a_full_engine_queues_and_then_refuses() -> None:
    async with Engine.from_deployment(deployment(waiting_line=1)) as engine:
        async with engine.session() as first, engine.session() as second:
            assert (first.view.state, second.view.state) == ("active", "queued")
            with pytest.raises(TooManyError) as caught:
                async with engine.session():
                    pass
            assert caught.value.retry_after_s > 0
            await first.close()
            async with looking(second) as screen:
                assert await screen.chunk()
        assert engine.pool.status["stub"].busy == 0
