"""Programs that talk, inside one process."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import pytest
import talking_stub
from text_suite import TextSuite

from reverie.config import Deployment
from reverie.gpu_pool.wire.options import ModelOptions, PoolOptions
from reverie.host import Engine
from reverie.sessions.client.session import Session


class LocalService:
    """Sessions of an engine in this process."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def session(
        self,
        *,
        program: str = "",
        prompt: str = "",
        parameters: dict[str, float] | None = None,
    ) -> AbstractAsyncContextManager[Session]:
        return self.engine.session(program=program, prompt=prompt, parameters=parameters)


@pytest.fixture
async def service() -> AsyncIterator[LocalService]:
    models = (ModelOptions(name="stub", family=talking_stub.LOCATION, sessions=3),)
    deployment = Deployment(pool=PoolOptions(mode="inline", models=models))
    async with Engine.from_deployment(deployment) as engine:
        yield LocalService(engine)


class TestLocalText(TextSuite):
    """The suite, on `LocalSession`."""
