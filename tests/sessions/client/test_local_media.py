"""Pushed media, inside one process."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import pytest
from media_suite import ECHO, MediaSuite

from reverie.config import Deployment
from reverie.gpu_pool.wire.options import ModelOptions, PoolOptions
from reverie.host import Engine
from reverie.sessions import SessionLimits
from reverie.sessions.client.session import Session


class LocalService:
    """Sessions of an engine in this process."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def session(self) -> AbstractAsyncContextManager[Session]:
        return self.engine.session()


@pytest.fixture
async def service() -> AsyncIterator[LocalService]:
    pool = PoolOptions(mode="inline", models=(ModelOptions(name="echo", family=ECHO),))
    limits = SessionLimits(input_gap_s=0.3)
    async with Engine.from_deployment(Deployment(pool=pool, sessions=limits)) as engine:
        yield LocalService(engine)


class TestLocalMedia(MediaSuite):
    """The suite, on `LocalSession`."""
