"""Coming to a session, being turned away, taking over and coming back (C15, C20, C28)."""

import asyncio
import json
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from rtc_rig import LIMIT_S, ServerRig, WireClient, server_rig, together
from stub_model import LOG_VARIABLE, read_log
from waiting import until
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from reverie.rtc.options import ServerOptions
from reverie.sessions import SessionLimits
from reverie.sessions.protocol.events import Error, SessionAttached, SessionClosed
from reverie.sessions.protocol.media_events import MediaChunk


async def turned_away(
    rig: ServerRig, session: str, message: str | bytes | bytearray
) -> tuple[int, str, Any]:
    """Send a first message; return the close, and the event before it."""
    async with connect(rig.socket_url(session), proxy=None) as socket:
        client = WireClient(socket)
        await socket.send(message, text=True if isinstance(message, bytearray) else None)
        code, reason = await client.closed()
        return code, reason, client.events[-1]


def hello(token: str, **fields: Any) -> str:
    return json.dumps({"type": "hello", "protocol": 1, "token": token, **fields})


BAD_HELLOS: list[tuple[str | bytes | bytearray, str]] = [  # a bytearray goes as text
    ("{}", "hello_expected"),
    ("nonsense", "not_json"),
    (b"\x00\x01", "binary_frame"),
    (bytearray(b"\xff\xfe"), "not_utf8"),
    (hello("t", protocol=2), "unsupported_protocol"),
    (hello("t", codecs=["vp8"]), "out_of_range"),
    ('{"type":"hello","protocol":1}', "missing"),
]


async def test_a_wrong_hello_is_explained_and_the_socket_closed(
    rig: ServerRig, caplog: pytest.LogCaptureFixture
) -> None:
    session = (await rig.open())["id"]
    for message, code in BAD_HELLOS:
        close, reason, event = await turned_away(rig, session, message)
        assert (close, reason) == (4400, code)
        assert isinstance(event, Error)
        assert event.code == code
    assert not caplog.records


async def test_a_wrong_token_or_session_is_turned_away(rig: ServerRig) -> None:
    opened, other = await rig.open(), await rig.open()
    for token in ("nonsense", other["token"], opened["owner"]):
        close, reason, event = await turned_away(rig, opened["id"], hello(token, id="h7"))
        assert (close, reason, event.code) == (4404, "no_such_session", "no_such_session")
        assert event.command == "h7"
    close, reason, event = await turned_away(rig, opened["id"], hello(opened["watch_token"]))
    assert (close, event.field) == (4401, "role")
    close, reason, _ = await turned_away(rig, "nothing", hello(opened["token"]))
    assert (close, reason) == (4404, "no_such_session")
    rig.store.close(opened["id"])
    close, reason, event = await turned_away(rig, opened["id"], hello(opened["token"]))
    assert (close, reason) == (4404, "no_such_session: closed")
    assert isinstance(event, SessionClosed)


@pytest.mark.parametrize("says", ["nothing", "pings", "half a frame"])
async def test_a_socket_without_a_hello_is_ended_in_time(says: str) -> None:
    async with server_rig(server=ServerOptions(hello_timeout_s=0.3, message_timeout_s=0.2)) as rig:
        opened = await rig.open()
        async with connect(rig.socket_url(opened["id"]), proxy=None) as socket:
            if says == "half a frame":
                socket.transport.write(b"\x81\xfe\x01\x00abcdxxx")

            async def listen() -> None:
                while True:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(socket.recv(), 0.02)
                    if says == "pings":
                        await socket.ping()

            with pytest.raises(ConnectionClosed) as caught:
                await asyncio.wait_for(listen(), LIMIT_S)
            assert caught.value.rcvd is not None
            assert caught.value.rcvd.code == 4408
            expected = "message_timeout" if says == "half a frame" else "hello_timeout"
            assert caught.value.rcvd.reason == expected


async def test_an_idle_driver_is_detached_and_a_viewer_is_not() -> None:
    limits = SessionLimits(idle_s=1.5, grace_s=30)
    async with server_rig(limits=limits) as rig:
        opened = await rig.open(parameters={"step_ms": 5})
        async with (
            rig.client(opened) as driver,
            rig.client(opened, token=opened["watch_token"], role="viewer") as viewer,
        ):
            viewer.sees = False  # it never says anything
            loop = asyncio.get_running_loop()
            end_s = loop.time() + 2.5

            async def play() -> None:
                while loop.time() < end_s:
                    await driver.hear()
                driver.sees = False
                assert await driver.closed() == (4408, "idle")

            async def watch() -> None:
                while loop.time() < end_s:
                    await viewer.hear()
                assert await viewer.closed() == (4408, "idle")

            await together(play(), watch())


async def test_viewers_watch_the_same_session_and_may_not_change_it(rig: ServerRig) -> None:
    opened = await rig.open()
    async with (
        rig.client(opened) as driver,
        rig.client(opened, token=opened["watch_token"], role="viewer", codecs=["jpeg"]) as viewer,
    ):
        seen, watched = await together(driver.chunk(3), viewer.chunk(3))
        assert seen.chunk == watched.chunk or abs(seen.chunk - watched.chunk) < 3
        refused = await viewer.ask(type="push_text", text="mine")
        assert isinstance(refused, Error)
        assert refused.code == "read_only"
        kinds = {e.codec for e in viewer.events if e.type == "media.init"}
        assert kinds == {"jpeg"}


async def test_too_many_viewers_are_turned_away() -> None:
    async with server_rig(limits=SessionLimits(attachments=1)) as rig:
        opened = await rig.open()
        async with rig.client(opened) as driver:
            await driver.hears("session.attached")
            message = hello(opened["watch_token"], role="viewer")
            close, reason, event = await turned_away(rig, opened["id"], message)
            assert (close, reason) == (4429, event.code) == (4429, "too_many_attachments")
            assert event.retry_after_s > 0


async def test_a_replaced_driver_is_told_why(rig: ServerRig) -> None:
    opened = await rig.open()
    async with rig.client(opened) as first:
        await first.chunk(1)
        async with rig.client(opened) as second:
            assert await first.closed() == (4409, "replaced")
            assert isinstance(first.events[-1], Error)
            assert first.events[-1].code == "replaced"
            await second.chunk(3)


async def test_of_two_drivers_at_the_same_moment_one_is_replaced(rig: ServerRig) -> None:
    opened = await rig.open()
    url = rig.socket_url(opened["id"])
    async with connect(url, proxy=None) as one, connect(url, proxy=None) as two:
        clients = [WireClient(one), WireClient(two)]
        await together(*(client.hello(opened["token"]) for client in clients))
        outcomes = await together(*(play_or_end(client) for client in clients))
        assert sorted(outcomes) == ["played", "replaced"]


async def play_or_end(client: WireClient) -> str:
    """Return `played` when three chunks come, else the reason of the close."""
    try:
        await client.chunk(2)
    except ConnectionClosed as error:
        return error.rcvd.reason if error.rcvd else "lost"
    return "played"


async def test_coming_back_twenty_times_always_finds_one_running_world(
    rig: ServerRig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(LOG_VARIABLE, str(tmp_path / "steps"))
    choose = random.Random(7)
    opened = await rig.open(parameters={"step_ms": 2})
    newest = -1
    for _ in range(20):
        async with rig.client(opened) as client:
            first = await client.until(lambda event: isinstance(event, MediaChunk))
            assert isinstance(first, MediaChunk)
            assert [event.type for event in client.events if event.type.startswith("media")] == [
                "media.init",
                "media.chunk",
            ]
            assert first.key
            assert first.chunk >= newest
            newest = first.chunk
            if choose.random() < 0.7:
                newest = (await client.chunk(newest + 1)).chunk
            if choose.random() < 0.5:
                client.socket.transport.abort()
    await until(lambda: rig.store.get(opened["id"]).view.viewers == 0)
    assert rig.busy == 1
    rig.store.close(opened["id"])
    await until(lambda: rig.busy == 0)
    lines = read_log(tmp_path / "steps")
    assert [line.event for line in lines] == ["start", "end"] * (len(lines) // 2)
    order = [(line.chunk, line.unit) for line in lines if line.event == "start"]
    assert order == sorted(set(order))  # one loop, which did nothing twice


async def test_what_comes_is_in_order_and_complete_comes_last(rig: ServerRig) -> None:
    for ending in ("close", "interrupt"):
        opened = await rig.open()
        async with rig.client(opened) as client:
            await client.chunk(1)
            if ending == "interrupt":
                await client.ask(type="interrupt")
                await client.chunk(3)
            await client.ask(type="close")
            await client.closed()
        types = [event.type for event in client.events]
        chunks = [event for event in client.events if isinstance(event, MediaChunk)]
        assert isinstance(client.events[0], SessionAttached)
        assert types.index("media.init") < types.index("media.chunk")
        assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
        assert [event.sequence for event in client.events] == list(range(len(types)))
        assert types.count("media.complete") == 1
        assert types[-2:] == ["media.complete", "session.closed"]
        assert client.events[-2].chunks == len(chunks)  # type: ignore[union-attr]


async def test_draining_tells_every_socket_before_it_returns_and_waits_for_no_hello() -> None:
    async with server_rig(server=ServerOptions(hello_timeout_s=60)) as rig:
        opened = await rig.open()
        async with (
            rig.client(opened) as client,
            connect(rig.socket_url(opened["id"]), proxy=None) as silent,
        ):
            await client.chunk(0)
            async with asyncio.timeout(LIMIT_S):
                await rig.context.drain()
            assert 'reverie_attached{role="driver"} 0.0' in rig.context.metrics.page()[0].decode()
            assert await client.closed() == (1001, "shutdown")
            assert await WireClient(silent).closed() == (1001, "shutdown")
        refused = await rig.http.post("/v1/sessions", json={})
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "shutting_down")
        assert (await rig.http.get("/readyz")).json()["draining"] is True
        assert (await turned_away(rig, opened["id"], hello(opened["token"])))[:2] == (
            1001,
            "shutdown",
        )
