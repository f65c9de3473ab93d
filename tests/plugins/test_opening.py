"""Where a world comes from: what is given, then the environment, then this machine."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from livekit.agents import APIConnectionError, APIConnectOptions, APIStatusError
from livekit.plugins.reverie_world.opening import Opening
from rtc_rig import ServerRig, server_rig
from stub_model import LOCATION
from waiting import until

from reverie.config import Deployment
from reverie.gpu_pool.wire.options import ModelOptions, PoolOptions
from reverie.host import Engine

ONCE = APIConnectOptions(max_retry=0, retry_interval=0.0, timeout=30.0)


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REVERIE_URL", raising=False)
    monkeypatch.delenv("REVERIE_OWNER", raising=False)


@pytest.fixture
async def rig() -> AsyncIterator[ServerRig]:
    async with server_rig() as running:
        yield running


def test_the_address_is_the_one_given_or_that_of_the_environment_or_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Opening().where == "http://127.0.0.1:8000"
    monkeypatch.setenv("REVERIE_URL", "http://worlds.example")
    assert Opening().where == "http://worlds.example"
    assert Opening(url="http://other.example").where == "http://other.example"


async def test_a_server_opens_what_was_asked_for(
    rig: ServerRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVERIE_URL", rig.url)
    opening = Opening(model="stub", program="world", prompt="a lake", seed=5)
    async with AsyncExitStack() as stack:
        session = await opening.enter(stack, ONCE)
        view = session.view
        assert (view.model, view.program, view.prompt, view.seed) == ("stub", "world", "a lake", 5)
    await until(lambda: len(rig.store) == 0)  # leaving it ends the world


async def test_the_owner_is_the_one_whose_world_it_is(
    rig: ServerRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = (await rig.open())["owner"]
    monkeypatch.setenv("REVERIE_OWNER", owner)
    async with AsyncExitStack() as stack:
        session = await Opening(url=rig.url).enter(stack, ONCE)
        listed = await rig.http.get("/v1/sessions", headers={"Authorization": f"Bearer {owner}"})
        assert session.id in [each["id"] for each in listed.json()["sessions"]]
    with pytest.raises(APIConnectionError) as refused:
        await Opening(url=rig.url, owner="nonsense").enter(AsyncExitStack(), ONCE)
    assert "bad_owner" in str(refused.value.__cause__)


async def test_an_engine_in_this_process_opens_likewise() -> None:
    models = (ModelOptions(name="stub", family=LOCATION),)
    deployment = Deployment(pool=PoolOptions(mode="inline", models=models))
    async with Engine.from_deployment(deployment) as engine, AsyncExitStack() as stack:
        opening = Opening(prompt="a lake", seed=5, engine=engine)
        view = (await opening.enter(stack, ONCE)).view
        assert (view.model, view.program, view.prompt, view.seed) == ("stub", "world", "a lake", 5)
        assert opening.where == "the engine in this process"


async def test_what_cannot_be_opened_is_refused_at_once_and_by_name(rig: ServerRig) -> None:
    with pytest.raises(APIStatusError, match="no model 'nothing' is served") as refused:
        await Opening(url=rig.url, model="nothing").enter(
            AsyncExitStack(), APIConnectOptions(max_retry=5)
        )
    assert (refused.value.status_code, refused.value.retryable) == (400, False)


async def test_where_nobody_answers_the_error_says_who_was_asked() -> None:
    opening = Opening(url="http://127.0.0.1:1")
    twice = APIConnectOptions(max_retry=1, retry_interval=0.0, timeout=30.0)
    with pytest.raises(APIConnectionError, match=r"127\.0\.0\.1:1"):
        await opening.enter(AsyncExitStack(), twice)
