"""The session interface inside one process, over the real pool on a thread."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import pytest
from session_suite import SessionSuite, looking
from stub_model import LOCATION

from reverie.config import Deployment
from reverie.gpu_pool.wire.options import ModelOptions, PoolOptions
from reverie.host import Engine
from reverie.sessions.attachments.attachment import Role
from reverie.sessions.client.local_session import LocalSession
from reverie.sessions.client.session import Session


class LocalService:
    """Sessions of an engine in this process."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def session(
        self,
        *,
        prompt: str = "",
        seed: int | None = None,
        parameters: dict[str, float] | None = None,
    ) -> AbstractAsyncContextManager[Session]:
        return self.engine.session(prompt=prompt, seed=seed, parameters=parameters)


def stub_deployment() -> Deployment:
    models = (ModelOptions(name="stub", family=LOCATION, sessions=3),)
    return Deployment(pool=PoolOptions(mode="inline", models=models))


@pytest.fixture
async def service() -> AsyncIterator[LocalService]:
    async with Engine.from_deployment(stub_deployment()) as engine:
        yield LocalService(engine)


class TestLocalSession(SessionSuite):
    """The suite, on `LocalSession`."""


async def test_leaving_the_block_gives_the_place_back(service: LocalService) -> None:
    for _ in range(4):
        async with service.session(prompt="a lake") as session, looking(session) as screen:
            await screen.frame()
        assert service.engine.pool.status["stub"].busy == 0
    assert len(service.engine.store) == 0


async def test_a_program_that_does_not_listen_is_not_ended(service: LocalService) -> None:
    async with service.session(prompt="a lake") as session:
        for number in range(500):
            await session.push_text(f"prompt {number}")
        async with looking(session) as screen:
            await screen.chunk()


async def test_a_driver_that_stops_streaming_leaves_the_pace_to_the_viewers(
    service: LocalService,
) -> None:
    async with service.session(prompt="a lake") as session:
        async for event in session.stream():
            if event.type == "media.chunk":
                break
        server_session = service.engine.store.get(session.id)
        async with LocalSession(server_session, Role.VIEWER) as viewer, looking(viewer) as screen:
            for _ in range(5):
                await screen.chunk()
        assert session.view.viewers == 1
        async with looking(session) as screen:
            assert await screen.chunk()
