"""Bad input on a live session: the stream continues (C17, C26, C36, C37)."""

import asyncio
import json
import time

import numpy as np
import pytest
from rtc_rig import ServerRig, WireClient, server_rig, together
from rtc_serving import RawSocket, upgrade
from stub_model import prompt_mark, read_stamp
from websockets.exceptions import ConnectionClosed

from reverie.rtc.options import ServerOptions
from reverie.sessions import SessionLimits
from reverie.sessions.protocol.events import (
    ControlApplied,
    ControlSuperseded,
    Error,
    RequestAccepted,
)
from reverie.sessions.protocol.media_events import MediaChunk

NUMBERS = {
    "NaN": "non_finite",
    "-Infinity": "non_finite",
    "1e400": "non_finite",
    "-1": "out_of_range",
    "true": "wrong_type",
    '"512"': "wrong_type",
    "null": "wrong_type",
    str(2**63): "out_of_range",
    "1" * 5000: "out_of_range",
}

BAD: list[tuple[str | bytes, str | None, str | None]] = [
    *(
        (f'{{"type":"step","id":"x","count":{number}}}', code, "count")
        for number, code in {**NUMBERS, "0": "out_of_range", "1.5": "wrong_type"}.items()
    ),
    *(
        (f'{{"type":"update","id":"x","parameters":{{"step_ms":{number}}}}}', code,
         "parameters.step_ms")
        for number, code in NUMBERS.items()
    ),
    ('{"type":"update","id":"x","parameters":{"fault_chunk":1.5}}', None, "parameters.fault_chunk"),
    ('{"type":"update","id":"x","parameters":{"width":512}}', "unknown_parameter",
     "parameters.width"),
    ('{"type":"reset","id":"x","seed":1.5}', "wrong_type", "seed"),
    ('{"type":"push_text","id":"x","text":null}', "wrong_type", "text"),
    ('{"type":"push_text","id":"x","text":["a"]}', "wrong_type", "text"),
    ('{"type":"push_text","id":"x","text":"\\ud83d"}', "bad_text", "text"),
    (f'{{"type":"push_text","id":"x","text":"{"y" * 100_000}"}}', "too_long", "text"),
    ('{"type":"push_action","id":"x","action":{"jump":"left"}}', "unknown_control", "action.jump"),
    ('{"type":"push_action","id":"x","action":{"move":"away"}}', "unknown_key", "action.move"),
    ('{"type":"push_action","id":"x","action":{"look":2}}', "out_of_range", "action.look"),
    ('{"type":"push_action","id":"x","action":{"move":true}}', "wrong_type", "action.move"),
    ('{"type":"step","id":"x","count":1}', "not_paused", None),
    ('{"type":"rewind","id":"x","chunk":99999}', None, None),
    ('{"type":"restore","id":"x","name":"nothing"}', None, None),
    ('{"type":"request_key_frame","id":"x","stream":"nothing"}', "unknown_stream", "stream"),
    ('{"type":"playhead","id":"x","chunk":99999,"pts_us":0}', "not_shown", "chunk"),
    ('{"type":"dance","id":"x"}', "unknown_command", "type"),
    ('{"type":"hello","protocol":1,"token":"t","id":"x"}', "unknown_command", "type"),
    ('{"type":"pause","id":"x","id":"x"}', "duplicate_key", "id"),
    ('{"type":"step","id":"x","count":' + "[" * 100_000, "too_deep", "count"),
    ("[" * 100_000, "too_deep", "$"),
    ("[1]", "not_an_object", "$"),
    ("\ufeff{}", "byte_order_mark", "$"),
    ("", "not_json", "$"),
    (b'{"type":"pause","id":"x"}', "binary_frame", "$"),
]  # fmt: skip


async def test_every_oddity_is_a_typed_error_and_the_stream_continues(rig: ServerRig) -> None:
    opened = await rig.open(prompt="before")
    async with rig.client(opened) as client:
        await client.chunk(0)
        for message, code, field in BAD:
            await client.socket.send(message)
            error = await client.until(lambda event: isinstance(event, Error))
            assert isinstance(error, Error)
            shown = message[:80]
            assert code is None or (error.code, error.field) == (code, field), shown
            assert error.command in ("x", None), shown
            assert (
                not isinstance(message, str)
                or '"id":"x"' not in message
                or (error.command == "x" or code in ("too_deep", "duplicate_key"))
            ), shown
        newest = max(event.chunk for event in client.events if isinstance(event, MediaChunk))
        last = await client.chunk(newest + 2)
        assert read_stamp(pixels(last)).prompt == prompt_mark("before")


def pixels(chunk: MediaChunk) -> "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]":
    return np.frombuffer(chunk.data, np.uint8).reshape(64, 64, 3)


async def test_a_message_at_the_limit_works_and_one_over_it_leaves_the_session() -> None:
    limit = 2**16
    options = ServerOptions(message_bytes=limit)
    async with server_rig(server=options, limits=SessionLimits(prompt_chars=limit)) as rig:
        opened = await rig.open()
        for size in (limit + 1, 10 * limit):
            for kind in ("text", "binary"):
                async with rig.client(opened) as client:
                    attached = await client.hears("session.attached")
                    assert attached.limits.message_bytes == limit
                    fits = await client.ask(type="push_text", text="x" * (limit - 200))
                    assert isinstance(fits, RequestAccepted)
                    message = json.dumps({"type": "push_text", "id": "big", "text": "x" * size})
                    await client.socket.send(message if kind == "text" else message.encode())
                    code, reason = await client.closed()
                    assert code == 1009
                    assert reason.startswith("too_large: ")
                    assert str(limit) in reason
        async with rig.client(opened) as client:
            await client.chunk(1)


async def test_a_message_over_the_limit_is_not_gathered_first(rig: ServerRig) -> None:
    opened = await rig.open()
    raw = await RawSocket.open(rig.url)
    await raw.say(upgrade(f"/v1/sessions/{opened['id']}/ws"))
    await raw.reader.readuntil(b"\r\n\r\n")
    await raw.say(b"\x81\xff" + (2**40).to_bytes(8, "big") + b"mask")  # the head alone is enough
    assert b"too_large" in await raw.rest(5)
    await raw.close()


async def test_prompts_of_every_length_are_answered(rig: ServerRig) -> None:
    opened = await rig.open()
    async with rig.client(opened) as client:
        await client.chunk(0)
        texts = ("", "   ", " ".join(["word"] * 31), " ".join(["word"] * 33))
        for text in texts:
            command = await client.say(type="push_text", text=text)
            applied = await client.applied(command)
            assert applied.truncated_at == (32 if len(text.split()) > 32 else None)
        shown = await client.chunk(applied.chunk)
        assert read_stamp(pixels(shown)).prompt == prompt_mark(text)


async def test_a_burst_of_updates_is_answered_one_by_one_and_the_last_wins(rig: ServerRig) -> None:
    count, seconds = 2000, 2.0
    opened = await rig.open(parameters={"step_ms": 20})
    async with rig.client(opened) as client:
        await client.chunk(1)
        sent: list[str] = []

        async def send() -> None:
            start_s = time.monotonic()
            for number in range(count):
                sent.append(await client.say(type="push_text", text=f"prompt {number}"))
                ahead_s = number * seconds / count - (time.monotonic() - start_s)
                if ahead_s > 0.02:
                    await asyncio.sleep(ahead_s)

        async def hear() -> None:
            left = count
            while left:
                event = await client.hear()
                left -= isinstance(event, ControlApplied | ControlSuperseded)

        await together(send(), hear())
        accepted = [e.command for e in client.events if isinstance(e, RequestAccepted)]
        applied = [e.control for e in client.events if isinstance(e, ControlApplied)]
        superseded = [e.control for e in client.events if isinstance(e, ControlSuperseded)]
        assert accepted == sent
        assert sorted(applied + superseded) == sorted(sent)
        assert applied[-1] == sent[-1]
        shown = {event.chunk for event in client.events if isinstance(event, MediaChunk)}
        assert len(applied) <= len(shown) + 2
        last = await client.chunk(max(shown) + 1)
        assert read_stamp(pixels(last)).prompt == prompt_mark(f"prompt {count - 1}")


async def test_commands_above_the_rate_are_refused_and_nothing_else_happens() -> None:
    async with server_rig(server=ServerOptions(commands_per_s=5, command_burst=10)) as rig:
        opened = await rig.open()
        async with rig.client(opened) as client:
            attached = await client.hears("session.attached")
            assert attached.limits.commands_per_s == 5
            answers = await ask_many(client, 15)
            refused = [answer for answer in answers if isinstance(answer, Error)]
            assert [answer.code for answer in refused] == ["rate_limited"] * len(refused)
            assert 3 <= len(refused) <= 5
            assert all(answer.retry_after_s and answer.command for answer in refused)
            assert "10 at once (command_burst)" in refused[0].message
            await client.chunk(2)


async def ask_many(client: WireClient, count: int) -> list[RequestAccepted | Error]:
    for _ in range(count):
        await client.say(type="release_all")
    answers: list[RequestAccepted | Error] = []
    while len(answers) < count:
        event = await client.hear()
        if isinstance(event, RequestAccepted | Error):
            answers.append(event)
    return answers


async def test_a_lost_session_is_refused_with_a_closed_socket_not_a_hang(rig: ServerRig) -> None:
    opened = await rig.open()
    async with rig.client(opened) as client:
        await client.chunk(0)
        rig.store.close(opened["id"])
        assert await client.closed() == (1000, "closed")
        with pytest.raises(ConnectionClosed):
            await client.say(type="pause")


async def test_text_that_is_no_utf_8_is_a_typed_error_and_the_stream_continues(
    rig: ServerRig, caplog: pytest.LogCaptureFixture
) -> None:
    opened = await rig.open()
    async with rig.client(opened) as client:
        await client.chunk(0)
        for pieces in ((b"\xff\xfe",), (b'{"type":"pause","id":"\xc3', b'("}')):
            await client.socket.send(pieces, text=True)
            error = await client.hears("error")
            assert (error.code, error.field) == ("not_utf8", "$")
        assert error.message == "not UTF-8 at byte 22"
        split = (b'{"type":"push_text","id":"split","text":"caf\xc3', b'\xa9"}')
        await client.socket.send(split, text=True)
        assert (await client.hears("request.accepted")).command == "split"
        await client.chunk(3)
    assert not caplog.records


async def test_a_flood_of_commands_is_answered_once_each_and_the_driver_stays() -> None:
    count = 20_000
    async with server_rig() as rig:
        opened = await rig.open()
        async with rig.client(opened) as client:
            await client.chunk(0)
            said = b"".join(masked(f'{{"type":"resume","id":"n{n}"}}') for n in range(count))
            client.socket.transport.write(said)
            answered: list[str | None] = []
            async with asyncio.timeout(60):
                while len(answered) < count:
                    event = await client.hear()
                    if isinstance(event, RequestAccepted | Error):
                        answered.append(event.command)
            assert sorted(answered, key=str) == sorted(f"n{n}" for n in range(count))
            newest = max(event.chunk for event in client.events if isinstance(event, MediaChunk))
            await client.chunk(newest + 2)


def masked(text: str) -> bytes:
    """Return the frame of a short text, under a mask that changes nothing."""
    data = text.encode()
    return b"\x81" + bytes([0x80 | len(data)]) + bytes(4) + data
