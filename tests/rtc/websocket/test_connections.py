"""C15 and siblings at the level of sockets: silence, half requests, stalls, size, too many."""

import asyncio
import json

import pytest
from rtc_serving import RawSocket, serving, upgrade
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from waiting import until
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from reverie.rtc.options import ServerOptions

SHORT = ServerOptions(
    request_timeout_s=0.2,
    message_timeout_s=0.2,
    send_timeout_s=0.3,
    close_timeout_s=0.3,
    message_bytes=2**16,
)


class Echo:
    """Sends back what comes, and remembers how each socket ended."""

    def __init__(self) -> None:
        self.ends: list[tuple[int, str]] = []
        self.app = Starlette(
            routes=[Route("/page", self.page), Route("/big", self.big),
                    WebSocketRoute("/echo", self.echo), WebSocketRoute("/flood", self.flood)]
        )  # fmt: skip

    async def page(self, request: Request) -> Response:
        return PlainTextResponse("page")

    async def big(self, request: Request) -> Response:
        return PlainTextResponse("x" * 50_000_000)

    async def echo(self, socket: WebSocket) -> None:
        await socket.accept()
        try:
            while True:
                message = await socket.receive()
                if message["type"] == "websocket.disconnect":
                    self.ends.append((message["code"], message.get("reason") or ""))
                    return
                await socket.send({**message, "type": "websocket.send"})
        except WebSocketDisconnect as end:
            self.ends.append((end.code, end.reason))

    async def flood(self, socket: WebSocket) -> None:
        await socket.accept()
        try:
            while True:
                await socket.send_bytes(bytes(10_000))
        except WebSocketDisconnect as end:
            self.ends.append((end.code, end.reason))


def error_code(response: bytes) -> str:
    error = json.loads(response.partition(b"\r\n\r\n")[2])["error"]
    assert set(error) == {"code", "message", "field", "retry_after_s"}
    return str(error["code"])


@pytest.mark.parametrize(
    "start",
    [b"", b"GET /page", b"GET /page HTTP/1.1\r\nHost: a\r\n"],
    ids=["nothing", "half a line", "half a head"],
)
async def test_a_socket_without_a_request_is_told_and_ended(start: bytes) -> None:
    async with serving(Echo().app, SHORT) as server:
        raw = await RawSocket.open(server.url)
        await raw.say(start)
        answer = await raw.rest(2.0)
        assert answer.startswith(b"HTTP/1.1 408")
        assert error_code(answer) == "request_timeout"
        assert b"0.2 s (request_timeout_s)" in answer
        await raw.close()


async def test_what_is_no_http_is_refused_in_the_form_of_all_errors() -> None:
    async with serving(Echo().app, SHORT) as server:
        raw = await RawSocket.open(server.url)
        await raw.say(b"\x16\x03\x01\x02\x00\r\n\r\n")
        answer = await raw.rest(2.0)
        assert answer.startswith(b"HTTP/1.1 400")
        assert error_code(answer) == "bad_request"
        await raw.close()


async def test_a_second_request_that_stops_half_way_is_ended_too() -> None:
    async with serving(Echo().app, SHORT) as server:
        raw = await RawSocket.open(server.url)
        await raw.say(b"GET /page HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert b"page" in await raw.reader.readuntil(b"page")
        await raw.say(b"GET /pa")
        assert error_code(await raw.rest(2.0)) == "request_timeout"
        await raw.close()


async def test_a_body_that_is_not_read_has_a_time_limit() -> None:
    async with serving(Echo().app, SHORT) as server:
        raw = await RawSocket.open(server.url)
        await raw.say(b"GET /page HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\nx")
        assert b"page" in await raw.reader.readuntil(b"page")

        async def dribble() -> None:
            while True:
                await raw.say(b"x")
                await asyncio.sleep(0.01)

        with pytest.raises(ConnectionError):
            await asyncio.wait_for(dribble(), 5)
        await raw.close()


async def test_a_client_that_does_not_read_the_page_loses_its_socket() -> None:
    async with serving(Echo().app, SHORT) as server:
        raw = await RawSocket.open(server.url, receive_bytes=4096)
        await raw.say(b"GET /big HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        await until(lambda: len(server.server_state.connections) == 1)
        await until(lambda: not server.server_state.connections)
        raw.reset()


async def test_sockets_beyond_the_limit_are_turned_away_with_503() -> None:
    one = SHORT.model_copy(update={"connections": 1})
    async with (
        serving(Echo().app, one) as server,
        connect(server.url.replace("http", "ws") + "/echo"),
    ):
        raw = await RawSocket.open(server.url)
        answer = await raw.rest(2.0)
        assert answer.startswith(b"HTTP/1.1 503")
        assert error_code(answer) == "too_many_connections"
        await raw.close()


async def test_half_a_message_ends_the_socket_with_a_typed_reason() -> None:
    echo = Echo()
    async with serving(echo.app, SHORT) as server:
        raw = await RawSocket.open(server.url)
        await raw.say(upgrade("/echo"))
        await raw.reader.readuntil(b"\r\n\r\n")
        await raw.say(b"\x81\xfe\x01\x00abcd" + b"x" * 100)  # 100 of 256 masked bytes
        assert b"message_timeout" in await raw.rest(2.0)
        await raw.close()
        assert echo.ends == [(4408, "message_timeout")]


async def test_half_a_fragmented_message_ends_the_socket_too() -> None:
    async with serving(Echo().app, SHORT) as server:
        raw = await RawSocket.open(server.url)
        await raw.say(upgrade("/echo"))
        await raw.reader.readuntil(b"\r\n\r\n")
        await raw.say(b"\x01\x81abcdx")  # a text frame that is not the last of its message
        assert b"message_timeout" in await raw.rest(2.0)
        await raw.close()


async def test_a_message_in_slow_pieces_is_whole_when_it_ends_in_time() -> None:
    async with serving(Echo().app, SHORT) as server:
        raw = await RawSocket.open(server.url)
        await raw.say(upgrade("/echo"))
        await raw.reader.readuntil(b"\r\n\r\n")
        for piece in (b"\x81", b"\x82\x00\x00\x00", b"\x00h", b"i"):
            await raw.say(piece)
            await asyncio.sleep(0)
        assert await raw.reader.readexactly(4) == b"\x81\x02hi"
        await raw.close()


@pytest.mark.parametrize("factor", [1, 10])
@pytest.mark.parametrize("kind", [str, bytes])
async def test_a_message_over_the_limit_is_told_so(factor: int, kind: type) -> None:
    echo = Echo()
    limit = SHORT.message_bytes
    async with serving(echo.app, SHORT) as server:
        async with connect(server.url.replace("http", "ws") + "/echo", max_size=None) as client:
            size = limit + 1 if factor == 1 else factor * limit
            await client.send("x" * limit if kind is str else b"x" * limit)
            assert len(await client.recv()) == limit
            await client.send("x" * size if kind is str else b"x" * size)
            with pytest.raises(ConnectionClosed) as caught:
                await client.recv()
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1009
        assert caught.value.rcvd.reason == f"too_large: a message holds at most {limit} bytes"
        assert echo.ends[0][0] == 1009


async def test_the_reason_arrives_also_when_the_client_sends_all_before_it_reads() -> None:
    size = 64 * SHORT.message_bytes
    patient = SHORT.model_copy(update={"close_timeout_s": 5.0})
    async with serving(Echo().app, patient) as server:
        raw = await RawSocket.open(server.url)
        await raw.say(upgrade("/echo"))
        await raw.reader.readuntil(b"\r\n\r\n")
        raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await raw.say(b"\x81\xff" + size.to_bytes(8, "big") + b"mask" + b"x" * size)
        raw.writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert b"too_large" in await raw.rest(5.0)
        await raw.close()


async def test_a_client_that_takes_nothing_is_ended_as_slow() -> None:
    echo = Echo()
    async with serving(echo.app, SHORT) as server:
        raw = await RawSocket.open(server.url, receive_bytes=4096)
        raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await raw.say(upgrade("/flood"))
        await until(lambda: bool(echo.ends))
        assert len(server.server_state.connections) <= 1
        await until(lambda: not server.server_state.connections)
        raw.reset()


async def test_a_slow_client_that_reads_again_finds_the_reason() -> None:
    echo = Echo()
    async with serving(echo.app, SHORT.model_copy(update={"close_timeout_s": 5.0})) as server:
        raw = await RawSocket.open(server.url, receive_bytes=4096)
        raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await raw.say(upgrade("/flood"))
        await until(lambda: bool(echo.ends))
        raw.writer.transport.resume_reading()  # type: ignore[attr-defined]
        received = await raw.rest(3.0)
        assert received.endswith(b"\x88\x0d\x11\x3dslow_viewer")
        assert len(received) < 1_000_000
        await raw.close()


async def test_a_reset_is_noticed_while_the_socket_is_idle() -> None:
    echo = Echo()
    async with serving(echo.app, SHORT) as server:
        raw = await RawSocket.open(server.url)
        await raw.say(upgrade("/echo"))
        await raw.reader.readuntil(b"\r\n\r\n")
        raw.reset()
        await until(lambda: bool(echo.ends))


async def test_what_is_no_websocket_frame_ends_the_socket_with_a_typed_reason() -> None:
    echo = Echo()
    async with serving(echo.app, SHORT) as server:
        raw = await RawSocket.open(server.url)
        await raw.say(upgrade("/echo"))
        await raw.reader.readuntil(b"\r\n\r\n")
        await raw.say(b"\xf1\x80mask")  # reserved bits
        assert b"\x03\xeabad_frame: " in await raw.rest(2.0)
        await raw.close()
