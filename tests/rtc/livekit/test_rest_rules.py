"""When a world rests: nobody watches, its network is away, or somebody asked for it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from stub_model import LOCATION
from waiting import until

from reverie.config import Deployment
from reverie.gpu_pool.wire.options import ModelOptions, PoolOptions
from reverie.host import Engine
from reverie.rtc.livekit.options import BridgeOptions
from reverie.rtc.livekit.rest_rules import Rest, RestRules
from reverie.sessions import LocalSession

AT_ONCE = BridgeOptions(empty_after_s=0.0, keep_empty_s=3600.0)


@pytest.fixture
async def session() -> AsyncIterator[LocalSession]:
    models = (ModelOptions(name="stub", family=LOCATION),)
    deployment = Deployment(pool=PoolOptions(mode="inline", models=models))
    async with Engine.from_deployment(deployment) as engine, engine.session() as session:
        yield session


class Kept:
    """A lifetime that is watched and kept."""

    def __init__(self, session: LocalSession, options: BridgeOptions) -> None:
        self.changes = 0
        self.lifetime = RestRules(session, options, self._changed)
        self.over = asyncio.Event()

    def _changed(self) -> None:
        self.changes += 1

    async def watch(self) -> None:
        await self.lifetime.watch()
        self.over.set()


@asynccontextmanager
async def kept(session: LocalSession, options: BridgeOptions = AT_ONCE) -> AsyncIterator[Kept]:
    life = Kept(session, options)
    async with asyncio.TaskGroup() as tasks:
        children = [tasks.create_task(life.watch()), tasks.create_task(life.lifetime.keep())]
        yield life
        for child in children:
            child.cancel()


async def test_an_empty_room_parks_its_world_and_a_return_revives_it(
    session: LocalSession,
) -> None:
    async with kept(session) as life:
        life.lifetime.came("ada")
        life.lifetime.left("ada")
        await until(lambda: session.view.state == "paused")
        assert life.lifetime.parked
        life.lifetime.came("ada")
        await until(lambda: session.view.state == "active")
        assert not life.lifetime.parked


async def test_one_who_leaves_parks_nothing_while_another_watches(session: LocalSession) -> None:
    async with kept(session) as life:
        for identity in ("ada", "ben", "ada"):
            life.lifetime.came(identity)
        life.lifetime.left("ada")
        life.lifetime.left("ada")
        await until(lambda: life.lifetime.viewers == {"ben"})
        assert not life.lifetime.parked
        assert session.view.state == "active"


async def test_a_world_rests_as_long_as_there_is_any_reason(session: LocalSession) -> None:
    async with kept(session) as life:
        life.lifetime.came("ada")
        life.lifetime.rest(Rest.AWAY, True)
        life.lifetime.rest(Rest.ASKED, True)
        await until(lambda: session.view.state == "paused")
        life.lifetime.rest(Rest.AWAY, False)
        await session.pause()  # goes through the same queue: what was asked before has been done
        assert life.lifetime.reasons == {Rest.ASKED}
        assert session.view.state == "paused"
        life.lifetime.rest(Rest.ASKED, False)
        await until(lambda: session.view.state == "active")


async def test_a_parked_world_ends_when_nobody_comes_back(session: LocalSession) -> None:
    async with kept(session, replace(AT_ONCE, keep_empty_s=0.05)) as life:
        async with asyncio.timeout(10):
            await life.over.wait()
        assert life.lifetime.parked


async def test_a_world_in_line_that_nobody_waits_for_leaves_the_line() -> None:
    models = (ModelOptions(name="stub", family=LOCATION, sessions=1),)
    deployment = Deployment(pool=PoolOptions(mode="inline", models=models))
    async with (
        Engine.from_deployment(deployment) as engine,
        engine.session(),
        engine.session() as second,
    ):
        await until(lambda: second.view.state == "queued")
        async with kept(second) as life, asyncio.timeout(10):
            await life.over.wait()
            assert not life.lifetime.parked


async def test_a_parked_session_is_touched_so_that_it_is_not_idle(session: LocalSession) -> None:
    async with kept(session, replace(AT_ONCE, touch_s=0.02)) as life:
        await until(lambda: session.view.state == "paused")
        await session.resume()  # somebody else's mistake
        await until(lambda: session.view.state == "paused")
        assert life.lifetime.parked


async def test_a_session_that_is_over_stops_nothing(session: LocalSession) -> None:
    async with kept(session) as life:
        await session.close()
        life.lifetime.rest(Rest.ASKED, True)
        life.lifetime.came("ada")
        await until(lambda: life.changes == 3)


async def test_what_another_room_paused_this_one_resumes(session: LocalSession) -> None:
    """A world that was away when its room was lost goes on in the next one."""
    async with kept(session) as life:
        life.lifetime.came("ada")
        life.lifetime.rest(Rest.AWAY, True)
        await until(lambda: session.view.state == "paused")
    life.lifetime.rest(Rest.AWAY, False)
    keeping = asyncio.ensure_future(life.lifetime.keep())
    await until(lambda: session.view.state == "active")
    keeping.cancel()
