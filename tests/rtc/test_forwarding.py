"""Behind a proxy: a prefix of the path, and what the client asked the proxy for."""

import json
from typing import Any

import httpx
import pytest
from pydantic import ValidationError
from rtc_rig import WireClient, server_rig
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send
from websockets.asyncio.client import connect

from reverie.rtc.client.connect import connect as connect_client
from reverie.rtc.forwarding import ForwardedRequests, own_path
from reverie.rtc.options import ServerOptions

LISTED = "127.0.0.0/8"


async def seen(options: ServerOptions, path: str, **headers: str) -> dict[str, Any]:
    """Return what the application behind the middleware is asked for."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        told = {
            "path": scope["path"],
            "root": scope.get("root_path", ""),
            "host": request.headers["host"],
            "scheme": scope["scheme"],
            "own": own_path(request, "/v1/x"),
        }
        await JSONResponse(told)(scope, receive, send)

    transport = httpx.ASGITransport(ForwardedRequests(app, options), client=("127.0.0.1", 1))
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx.AsyncClient(transport=transport, base_url="http://inside") as http:
        told: dict[str, Any] = (await http.get(path, headers=named)).json()
    return told


@pytest.mark.parametrize("path", ["/worlds/v1/models", "/v1/models"])
async def test_a_prefix_is_understood_whether_the_proxy_keeps_it_or_not(path: str) -> None:
    told = await seen(ServerOptions(root_path="/worlds"), path)
    assert told["path"] == "/worlds/v1/models"
    assert told["root"] == "/worlds"
    assert told["own"] == "/worlds/v1/x"


async def test_a_name_that_only_begins_like_the_prefix_is_not_below_it() -> None:
    told = await seen(ServerOptions(root_path="/worlds"), "/worldsend")
    assert told["path"] == "/worlds/worldsend"


@pytest.mark.parametrize("prefix", ["worlds", "/worlds/", "//", "/a b", "/a?b", "/a#b", "/a%2F"])
def test_a_prefix_that_is_none_is_refused(prefix: str) -> None:
    with pytest.raises(ValidationError, match="root_path"):
        ServerOptions(root_path=prefix)


async def test_a_named_proxy_says_what_the_client_asked_for() -> None:
    told = await seen(
        ServerOptions(trusted_proxies=(LISTED,)),
        "/v1/models",
        x_forwarded_host="evil.example, play.example",
        x_forwarded_proto="https",
        x_forwarded_prefix="/worlds/",
    )
    assert told == {
        "path": "/worlds/v1/models",
        "root": "/worlds",
        "host": "play.example",
        "scheme": "https",
        "own": "/worlds/v1/x",
    }


async def test_of_anybody_else_these_headers_say_nothing() -> None:
    told = await seen(
        ServerOptions(trusted_proxies=("10.0.0.2",)),
        "/v1/models",
        x_forwarded_host="play.example",
        x_forwarded_proto="https",
        x_forwarded_prefix="/worlds",
    )
    assert (told["host"], told["scheme"], told["own"]) == ("inside", "http", "/v1/x")


@pytest.mark.parametrize("prefix", ["worlds", "/a//b", "https://evil.example", "/a\\b", "/../x y"])
async def test_a_prefix_that_is_none_counts_for_nothing(prefix: str) -> None:
    options = ServerOptions(trusted_proxies=(LISTED,))
    assert (await seen(options, "/v1/models", x_forwarded_prefix=prefix))["own"] == "/v1/x"


async def test_the_whole_server_works_below_a_prefix() -> None:
    async with server_rig(server=ServerOptions(root_path="/worlds")) as rig:
        moved = await rig.http.get("/worlds")
        assert (moved.status_code, moved.headers["location"]) == (307, "/worlds/")
        page = await rig.http.get("/worlds/")
        assert page.status_code == 200
        assert 'src="static/main.js"' in page.text  # relative to the page
        assert (await rig.http.get("/worlds/static/main.js")).status_code == 200
        assert (await rig.http.get("/worlds/nothing")).status_code == 404
        async with connect_client(f"{rig.url}/worlds/") as session:
            await session.push_text("a desert")
            async for event in session.stream():
                if event.type == "media.chunk":
                    break
        opened = await rig.open()
        url = f"{rig.url.replace('http', 'ws', 1)}/worlds/v1/sessions/{opened['id']}/ws"
        async with connect(url, compression=None, proxy=None) as socket:
            client = WireClient(socket)
            await client.hello(opened["token"])
            await client.hears("session.attached")


async def test_a_page_behind_a_named_proxy_speaks_to_its_own_server() -> None:
    told = {"origin": "https://play.example", "x-forwarded-host": "play.example"}
    options = ServerOptions(trusted_proxies=(LISTED,), allowed_hosts=("play.example",))
    async with server_rig(server=options) as rig:
        assert (await rig.http.get("/v1/models", headers=told)).status_code == 200
        foreign = await rig.http.get(
            "/v1/models", headers={**told, "origin": "https://evil.example"}
        )
        assert json.loads(foreign.content)["error"]["code"] == "foreign_origin"
    async with server_rig(server=ServerOptions(allowed_hosts=("play.example",))) as rig:
        unnamed = await rig.http.get("/v1/models", headers=told)
        assert json.loads(unnamed.content)["error"]["code"] == "foreign_origin"
