"""C38 over real sockets: another site's page, a rebound name, and programs."""

import pytest
from rtc_rig import ServerRig, WireClient, server_rig
from rtc_serving import RawSocket, upgrade
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from reverie.rtc.options import ServerOptions


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Host": "evil.example"},
    ],
    ids=lambda headers: "=".join(*headers.items()),
)
async def test_a_foreign_page_or_host_is_refused_before_anything_happens(
    rig: ServerRig, headers: dict[str, str]
) -> None:
    opened = await rig.open()
    path = f"/v1/sessions/{opened['id']}"
    bearer = {"Authorization": f"Bearer {opened['token']}"}
    for answer in (
        await rig.http.post("/v1/sessions", json={}, headers=headers),
        await rig.http.post(
            "/v1/sessions", content=b"{}", headers={**headers, "Content-Type": "text/plain"}
        ),
        await rig.http.get(path, headers={**bearer, **headers}),
        await rig.http.delete(path, headers={**bearer, **headers}),
    ):
        assert answer.status_code == 403
        assert answer.json()["error"]["code"] in ("foreign_origin", "foreign_host")
        assert "access-control-allow-origin" not in answer.headers
    assert len(rig.store) == 1
    host = headers.get("Host", "127.0.0.1")
    extra = f"Origin: {headers['Origin']}\r\n" if "Origin" in headers else ""
    raw = await RawSocket.open(rig.url)
    await raw.say(upgrade(f"{path}/ws", host, extra))
    assert (await raw.rest(5)).startswith(b"HTTP/1.1 403")
    await raw.close()


async def test_our_own_page_and_a_program_come_in(rig: ServerRig) -> None:
    opened = await rig.open()
    for origin in (Origin(rig.url), None):
        async with connect(rig.socket_url(opened["id"]), origin=origin, proxy=None) as socket:
            client = WireClient(socket)
            await client.hello(opened["token"])
            await client.chunk(0)


async def test_a_listed_page_may_use_the_server_from_its_own_origin() -> None:
    origin = "https://play.example"
    async with server_rig(server=ServerOptions(allowed_origins=(origin,))) as rig:
        headers = {"Origin": origin}
        ask = {**headers, "Access-Control-Request-Method": "POST"}
        allowed = await rig.http.options("/v1/sessions", headers=ask)
        assert allowed.headers["Access-Control-Allow-Origin"] == origin
        assert "access-control-allow-credentials" not in allowed.headers
        answer = await rig.http.post("/v1/sessions", json={}, headers=headers)
        assert answer.status_code == 201
        assert answer.headers["Access-Control-Allow-Origin"] == origin
        url = rig.socket_url(answer.json()["id"])
        async with connect(url, origin=Origin(origin), proxy=None) as socket:
            await WireClient(socket).hello(answer.json()["token"])


async def test_a_tricky_session_name_is_just_no_session(rig: ServerRig) -> None:
    for session in ("..%2f..%2fetc%2fpasswd", "%00", "file:%2f%2f%2fetc", "x" * 4000):
        bearer = {"Authorization": "Bearer t"}
        answer = await rig.http.get(f"/v1/sessions/{session}", headers=bearer)
        assert answer.status_code == 404
        assert await close_or_status(rig.socket_url(session)) in (4404, 403, 404)


async def close_or_status(url: str) -> int:
    try:
        async with connect(url, proxy=None) as socket:
            client = WireClient(socket)
            await client.hello("token")
            return (await client.closed())[0]
    except InvalidStatus as refused:
        return refused.response.status_code
