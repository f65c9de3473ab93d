"""One address takes all that there is, and another one comes to a real server."""

from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest
from pydantic import ValidationError
from rtc_rig import ServerRig, server_rig
from rtc_serving import RawSocket
from starlette.requests import Request
from waiting import until

from reverie.rtc.addresses import Addresses
from reverie.rtc.options import ServerOptions
from reverie.rtc.rate_limit import Rates

LOT = 20
HOG, GUEST = "127.0.0.2", "127.0.0.3"


async def opened_by(http: httpx.AsyncClient) -> httpx.Response:
    return await http.post("/v1/sessions", json={"model": "stub"})


@pytest.mark.parametrize("attached", [False, True], ids=["ghosts", "attached"])
async def test_a_newcomer_begins_though_one_address_has_asked_for_everything(
    attached: bool,
) -> None:
    async with server_rig(sessions=4) as rig, AsyncExitStack() as stack:
        hog = await stack.enter_async_context(rig.caller(HOG))
        guest = await stack.enter_async_context(rig.caller(GUEST))
        opened = [answer.json() for answer in [await opened_by(hog) for _ in range(LOT)]]
        assert rig.busy == 4
        if attached:
            for each in opened[:4]:
                client = await stack.enter_async_context(rig.client(each))
                await client.hears("session.attached")
        assert (await rig.http.get("/readyz")).status_code == 200, "others would get in"
        answer = await opened_by(guest)
        assert answer.status_code == 201
        async with rig.client(answer.json()) as client:
            await client.chunk(0)  # it runs, though the other address has ended nothing
        ended = [each for each in opened if not is_there(rig, each["id"])]
        assert len(ended) == 1
        assert rig.busy == 4


def is_there(rig: ServerRig, session: str) -> bool:
    return any(session == each for each in rig.store._registry._credentials_by_id)


async def test_a_session_that_gives_way_is_told_why() -> None:
    async with server_rig(sessions=2) as rig, AsyncExitStack() as stack:
        hog = await stack.enter_async_context(rig.caller(HOG))
        guest = await stack.enter_async_context(rig.caller(GUEST))
        clients = []
        for _ in range(2):
            opened = (await opened_by(hog)).json()
            clients.append(await stack.enter_async_context(rig.client(opened)))
            await clients[-1].chunk(0)
        assert (await opened_by(guest)).status_code == 201
        closed = await clients[1].hears("session.closed")
        assert closed.reason == "gave_way"
        assert "pool.give_way" in closed.message
        assert await clients[1].closed() == (1000, "gave_way")
        await clients[0].chunk(1)


async def test_a_full_line_makes_room_for_a_newcomer_too() -> None:
    async with server_rig(sessions=1, waiting_line=2) as rig, AsyncExitStack() as stack:
        hog = await stack.enter_async_context(rig.caller(HOG))
        guest = await stack.enter_async_context(rig.caller(GUEST))
        opened = [(await opened_by(hog)).json() for _ in range(3)]
        refused = await opened_by(hog)
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "10")
        queued = await opened_by(guest)
        assert queued.status_code == 201
        async with rig.client(queued.json()) as client:
            assert (await client.hears("request.queued")).position == 1
        await until(lambda: not is_there(rig, opened[2]["id"]))
        assert is_there(rig, opened[1]["id"])


async def test_an_address_opens_only_so_many_sessions_a_minute() -> None:
    options = ServerOptions(openings_per_min=4)
    async with server_rig(server=options, sessions=8) as rig, rig.caller(GUEST) as guest:
        for _ in range(2):
            first = await rig.open()
        refused = await opened_by(rig.http)
        error = refused.json()["error"]
        assert (refused.status_code, error["code"]) == (429, "too_many_openings")
        assert "openings_per_min" in error["message"]
        assert int(refused.headers["Retry-After"]) >= 1
        bearer = {"Authorization": f"Bearer {first['token']}"}
        fork = await rig.http.post(f"/v1/sessions/{first['id']}/fork", headers=bearer)
        assert fork.status_code == 429, "a fork is one as well"
        assert (await opened_by(guest)).status_code == 201


def test_a_rate_fills_again_and_is_each_address_s_own() -> None:
    rates = Rates(60)
    assert [rates.wait_s("a", 0.0) for _ in range(31)] == [0.0] * 30 + [1.0]
    assert rates.wait_s("b", 0.0) == 0.0
    assert rates.wait_s("a", 1.0) == 0.0
    assert rates.wait_s("a", 1.5) == pytest.approx(0.5)
    assert not any(Rates(None).wait_s("a", 0.0) for _ in range(1000))


async def test_a_client_that_disconnects_before_the_answer_leaves_no_session() -> None:
    async with server_rig() as rig:
        raw = await RawSocket.open(rig.url)
        body = b'{"model": "stub"}'
        head = (
            "POST /v1/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        await raw.say(head.encode() + body)
        raw.reset()
        created = rig.context.metrics.created
        await until(lambda: next(iter(created.collect())).samples[0].value == 1)
        await until(lambda: not rig.busy)
        assert not len(rig.store)
        assert (await opened_by(rig.http)).status_code == 201


async def test_one_address_cannot_keep_others_out_by_holding_all_connections() -> None:
    options = ServerOptions(connections=4, request_timeout_s=60)
    async with server_rig(server=options) as rig:
        held = [await RawSocket.open(rig.url, host=HOG) for _ in range(4)]
        more = await RawSocket.open(rig.url, host=HOG)
        assert b"too_many_connections" in await more.rest(5)
        request = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        guest = await RawSocket.open(rig.url, host=GUEST)
        await guest.say(request)
        assert b"alive" in await guest.rest(5)
        for raw in (*held, more, guest):
            await raw.close()


def asked(host: str, *forwarded: str) -> Request:
    headers = [(b"x-forwarded-for", each.encode()) for each in forwarded]
    return Request({"type": "http", "client": (host, 1), "headers": headers})


@pytest.mark.parametrize(
    ("host", "forwarded", "counted"),
    [
        ("203.0.113.9", ["198.51.100.7"], "203.0.113.9"),  # any client can write that
        ("10.0.0.1", ["198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", ["1.1.1.1, 198.51.100.7"], "198.51.100.7"),  # what its client wrote before
        ("10.0.0.1", ["1.1.1.1, 198.51.100.7, 10.0.0.2"], "198.51.100.7"),
        ("10.0.0.1", ["198.51.100.7", "10.0.0.2"], "198.51.100.7"),
        ("10.0.0.1", ["198.51.100.7:1234"], "198.51.100.7"),
        ("10.0.0.1", ["[2001:db8:1:2:3::4]:99"], "2001:db8:1:2::"),
        ("10.0.0.1", ["unknown"], "10.0.0.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("::ffff:10.0.0.1", ["198.51.100.7"], "198.51.100.7"),
    ],
)
def test_only_proxies_of_the_deployment_name_their_clients(
    host: str, forwarded: list[str], counted: str
) -> None:
    assert Addresses(["10.0.0.0/8"]).of(asked(host, *forwarded)) == counted


async def test_behind_a_named_proxy_each_client_is_counted_by_itself() -> None:
    options = ServerOptions(trusted_proxies=("127.0.0.1",))
    async with server_rig(server=options, sessions=2) as rig:

        async def ask(client: str) -> dict[str, Any]:
            headers = {"X-Forwarded-For": client}
            answer = await rig.http.post("/v1/sessions", json={}, headers=headers)
            opened: dict[str, Any] = answer.json()
            return opened

        for _ in range(3):
            await ask("198.51.100.7")
        async with rig.client(await ask("198.51.100.8")) as client:
            await client.chunk(0)


def test_a_proxy_that_is_no_address_is_refused_by_name() -> None:
    with pytest.raises(ValidationError, match=r"proxy\.example"):
        ServerOptions(trusted_proxies=("proxy.example",))
