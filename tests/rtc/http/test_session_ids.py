"""A client without a secret learns nothing of sessions, on any route."""

from contextlib import suppress
from typing import Any

from rtc_rig import ServerRig, server_rig
from starlette.routing import Route
from waiting import until
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from reverie.rtc.app import create_app
from reverie.rtc.options import ServerOptions
from reverie.sessions.recording.options import RecordingOptions
from reverie.sessions.state.session_state import new_session_id

UNKNOWN = new_session_id()


async def both(rig: ServerRig) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a running session and an ended one."""
    running, ended = await rig.open(), await rig.open()
    bearer = {"Authorization": f"Bearer {ended['token']}"}
    await rig.http.delete(f"/v1/sessions/{ended['id']}", headers=bearer)
    await until(lambda: len(rig.store) == 1)
    return running, ended


def routes(rig: ServerRig) -> list[tuple[str, str]]:
    """Return every route of a session, as method and path."""
    found = []
    for route in create_app(rig.context).routes:
        if isinstance(route, Route) and "{id}" in route.path:
            methods = (route.methods or set()) - {"HEAD", "OPTIONS"}
            found += [(method, route.path) for method in sorted(methods)]
    found.append(("GET", "/v1/ice?session={id}"))
    return found


async def test_unknown_ended_and_foreign_sessions_are_answered_alike() -> None:
    async with server_rig(sessions=4, recordings=RecordingOptions()) as rig:
        running, ended = await both(rig)
        own = await rig.open()
        bearer = {"Authorization": f"Bearer {own['token']}"}
        assert len(routes(rig)) > 15
        for method, path in routes(rig):
            answers = []
            for session in (UNKNOWN, running["id"], ended["id"]):
                url = path.format(
                    id=session, peer="p", recording="0" * 32, file="video.mp4", stream="s"
                )
                answer = await rig.http.request(method, url, headers=bearer)
                answers.append((answer.status_code, answer.content))
            assert answers[0][0] == 404, (method, path)
            assert answers[0] == answers[1] == answers[2], (method, path)


async def test_sockets_answer_unknown_ended_and_foreign_sessions_alike() -> None:
    async with server_rig(sessions=4) as rig:
        running, ended = await both(rig)
        answers = [
            await turned_away(rig, session, "wrong")
            for session in (UNKNOWN, running["id"], ended["id"])
        ]
        assert answers[0] == (4404, "no_such_session")
        assert answers[0] == answers[1] == answers[2]


async def turned_away(rig: ServerRig, session: str, token: str) -> tuple[int, str]:
    hello = f'{{"type":"hello","protocol":1,"token":"{token}","codecs":["jpeg"]}}'
    async with connect(rig.socket_url(session), proxy=None) as socket:
        await socket.send(hello)
        with suppress(ConnectionClosed):
            while True:
                await socket.recv()
        return socket.close_code or 0, socket.close_reason or ""


async def test_a_client_with_a_secret_of_an_ended_session_is_told_why() -> None:
    async with server_rig(sessions=4) as rig:
        _, ended = await both(rig)
        for secret in ("token", "watch_token", "owner"):
            bearer = {"Authorization": f"Bearer {ended[secret]}"}
            answer = await rig.http.get(f"/v1/sessions/{ended['id']}", headers=bearer)
            assert (answer.status_code, answer.json()["error"]["code"]) == (410, "closed")
        told = await turned_away(rig, ended["id"], ended["token"])
        assert told == (4404, "no_such_session: closed")


async def test_ids_have_128_bits_and_are_never_the_same() -> None:
    async with server_rig(sessions=4) as rig:
        opened = [await rig.open() for _ in range(2)]
        bearer = {"Authorization": f"Bearer {opened[0]['token']}"}
        async with rig.client(opened[0]) as client:
            await client.chunk(1)
            fork = await rig.http.post(f"/v1/sessions/{opened[0]['id']}/fork", headers=bearer)
        ids = {opened[0]["id"], opened[1]["id"], fork.json()["id"]}
        assert len(ids) == 3
        assert all(len(bytes.fromhex(each)) >= 16 for each in ids)


async def test_a_listed_page_may_use_every_method_of_the_api() -> None:
    origin = "https://play.example"
    async with server_rig(server=ServerOptions(allowed_origins=(origin,))) as rig:
        headers = {"Origin": origin, "Access-Control-Request-Method": "PUT"}
        answer = await rig.http.options("/v1/sessions/x/inputs/camera", headers=headers)
        allowed = answer.headers["Access-Control-Allow-Methods"].split(", ")
        api = {method for method, _ in routes(rig)} | {"POST", "GET"}
        assert api <= set(allowed)
        asked = answer.headers["Access-Control-Allow-Headers"].split(", ")
        assert {"authorization", "content-type", "if-match", "range"} <= set(asked)
        opened = await rig.open()
        bearer = {"Authorization": f"Bearer {opened['token']}", "Origin": origin}
        shown = await rig.http.get(f"/v1/sessions/{opened['id']}", headers=bearer)
        told = shown.headers["Access-Control-Expose-Headers"].split(", ")
        assert {"Location", "ETag", "Retry-After", "Content-Range"} <= set(told)
