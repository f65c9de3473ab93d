"""What `/v1/status` says is what a request for a session is answered."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import odd_models
import pool_rig
import pytest
from rtc_rig import ServerRig, bearer, server_rig
from rtc_serving import serving
from waiting import until

from reverie.gpu_pool import Pool
from reverie.rtc.app import create_app
from reverie.rtc.app_context import AppContext
from reverie.rtc.options import ServerOptions
from reverie.sessions import SessionLimits, SessionStore


async def status(http: httpx.AsyncClient, token: str = "", **query: str) -> dict[str, Any]:
    headers = bearer(token) if token else {}
    answer = await http.get("/v1/status", params=query, headers=headers)
    assert answer.status_code == 200
    body: dict[str, Any] = answer.json()
    return body


@asynccontextmanager
async def serving_pool(pool: Pool) -> AsyncIterator[httpx.AsyncClient]:
    """Serve a pool that the test starts."""
    options = ServerOptions()
    async with asyncio.TaskGroup() as tasks:
        store = SessionStore(pool, SessionLimits(), tasks)
        context = AppContext(store, pool, options)
        async with (
            serving(create_app(context), options, context.drain) as running,
            httpx.AsyncClient(base_url=running.url, trust_env=False) as http,
        ):
            yield http


async def test_an_idle_server_has_a_place_now(rig: ServerRig) -> None:
    assert await status(rig.http) == {
        "state": "ready",
        "open": True,
        "position": 0,
        "refusal": None,
        "models": [{"name": "stub", "state": "ready", "slots": 4, "busy": 0, "waiting": 0}],
    }


async def test_while_models_load_it_says_so_and_what_a_request_would_be_told() -> None:
    pool = Pool(pool_rig.options("process", family=odd_models.place("SlowToLoad")))
    async with serving_pool(pool) as http:
        before = await status(http)
        assert (before["state"], before["open"], before["models"]) == ("loading", False, [])
        starting = asyncio.ensure_future(pool.start())
        await until(lambda: bool(pool.status))
        loading = await status(http)
        assert loading["state"] == "loading"
        assert [each["state"] for each in loading["models"]] == ["loading"]
        refused = await http.post("/v1/sessions", json={})
        assert refused.status_code == 503
        assert loading["refusal"] == refused.json()["error"]
        assert loading["refusal"]["code"] == "not_ready"
        assert loading["refusal"]["retry_after_s"] > 0
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting


async def test_it_tells_the_position_in_the_line_and_then_that_the_line_is_full() -> None:
    async with server_rig(sessions=1, waiting_line=1) as rig:
        for position in (0, 1):
            told = await status(rig.http)
            assert (told["state"], told["open"], told["position"]) == ("ready", True, position)
            opened = await rig.open()
            assert opened["view"]["state"] == ("queued" if position else "detached")
        full = await status(rig.http)
        assert (full["state"], full["open"], full["position"]) == ("ready", False, None)
        refused = await rig.http.post("/v1/sessions", json={})
        assert full["refusal"] == refused.json()["error"]
        assert full["refusal"]["code"] == "too_many_waiting_line"


@pytest.mark.parametrize(
    ("query", "code"),
    [({"model": "nothing"}, "unknown_model"), ({"program": "nothing"}, "unknown_program")],
)
async def test_what_is_not_served_is_refused_here_as_there(
    rig: ServerRig, query: dict[str, str], code: str
) -> None:
    told = await status(rig.http, **query)
    refused = await rig.http.post("/v1/sessions", json=query)
    assert (told["open"], told["refusal"]) == (False, refused.json()["error"])
    assert told["refusal"]["code"] == code


async def test_limits_of_owners_and_addresses_are_told_and_not_used_up() -> None:
    server, limits = ServerOptions(openings_per_min=4), SessionLimits(sessions_per_owner=1)
    async with server_rig(server=server, limits=limits) as rig:
        for _ in range(10):
            assert (await status(rig.http))["open"]
        owner = (await rig.open())["owner"]
        assert (await status(rig.http, owner))["refusal"]["code"] == "too_many_sessions_per_owner"
        assert (await status(rig.http, "nonsense"))["refusal"]["code"] == "bad_owner"
        assert (await status(rig.http))["open"]
        await rig.open()
        told = await status(rig.http)
        assert told["refusal"]["code"] == "too_many_openings"
        assert 0 < told["refusal"]["retry_after_s"] <= 15


async def test_a_session_that_has_ended_is_known_before_it_is_asked_for(rig: ServerRig) -> None:
    opened = await rig.open()
    session, token = opened["id"], opened["token"]
    live = await status(rig.http, token, session=session)
    assert live["session"] == {"id": session, "live": True, "refusal": None}
    assert live["open"], "the token of a session is no owner"
    rig.store.close(session)
    await until(lambda: len(rig.store) == 0)
    ended = await status(rig.http, token, session=session)
    assert (ended["session"]["live"], ended["session"]["refusal"]["code"]) == (False, "closed")
    strange = await status(rig.http, "nonsense", session=session)
    assert strange["session"]["refusal"]["code"] == "no_such_session"


async def test_a_server_that_drains_says_so(rig: ServerRig) -> None:
    rig.context.draining = True
    told = await status(rig.http)
    assert (told["state"], told["open"]) == ("draining", False)
    assert told["refusal"]["code"] == "shutting_down"


async def test_a_model_that_has_been_given_up_has_failed_for_good() -> None:
    async with server_rig("process", restarts=0) as rig:
        os.kill(pool_rig.worker_pid(rig.pool), signal.SIGKILL)
        await until(lambda: bool(rig.pool.status["stub"].failure))
        told = await status(rig.http)
        assert (told["state"], told["open"]) == ("failed", False)
        assert (told["refusal"]["code"], told["refusal"]["retry_after_s"]) == (
            "model_unavailable",
            None,
        )
        refused = await rig.http.post("/v1/sessions", json={})
        assert refused.json()["error"]["code"] == "model_unavailable"
