"""Commands and events as WebSocket messages, and what is refused on the way in."""

import json
import struct

import pytest

from reverie.rtc.wire.errors import BadMessageError
from reverie.rtc.wire.framing import (
    CloseCode,
    close_code,
    decode_command,
    decode_event,
    encode_command,
    encode_event,
    error_event,
)
from reverie.sessions.protocol.commands import PushAction, PushText, Update
from reverie.sessions.protocol.events import ControlApplied, Error
from reverie.sessions.protocol.media_events import MediaChunk
from reverie.sessions.protocol.session_view import ParameterView

CHUNK = MediaChunk(
    stream="video",
    index=3,
    pts_us=1,
    duration_us=2,
    key=True,
    chunk=0,
    frame=0,
    last=True,
    step=4,
    size_bytes=5,
    data=b"\x00\x01\xff\x00\x02",
)


def refusal(message: str | bytes) -> BadMessageError:
    with pytest.raises(BadMessageError) as caught:
        decode_command(message)
    return caught.value


@pytest.mark.parametrize(
    "command",
    [
        PushText(id="a", text="night \u2014 \U0001f319", mode="append"),
        PushAction(id="b", action={"move": "left", "turn": 0.5}, edge="press"),
        Update(id="c", parameters={"speed": 2}, prompt="x", reset=True),
    ],
)
def test_a_command_survives_the_wire(command: PushText | PushAction | Update) -> None:
    assert decode_command(encode_command(command)) == command


def test_a_media_chunk_is_a_length_a_header_and_its_bytes() -> None:
    message = encode_event(CHUNK)
    assert isinstance(message, bytes)
    (length,) = struct.unpack_from(">I", message)
    assert json.loads(message[4 : 4 + length])["type"] == "media.chunk"
    assert message[4 + length :] == CHUNK.data
    assert decode_event(message) == CHUNK


def test_any_other_event_is_text() -> None:
    event = ControlApplied(control="a", step=1, chunk=0, pts_us=3, unknown_words=("zog",))
    message = encode_event(event)
    assert isinstance(message, str)
    assert decode_event(message) == event


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_the_server_never_says_a_number_that_json_lacks(value: float) -> None:
    message = encode_event(Error(code="x", message="", retry_after_s=value))
    parameter = ParameterView.model_construct(name="Infinity", value=value)
    assert isinstance(message, str)
    assert json.loads(message, parse_constant=pytest.fail)["retry_after_s"] is None
    assert "Infinity" in parameter.name


@pytest.mark.parametrize(
    ("message", "code", "field"),
    [
        ('{"type":"step","id":"a","count":-1}', "out_of_range", "count"),
        ('{"type":"step","id":"a","count":0}', "out_of_range", "count"),
        ('{"type":"step","id":"a","count":1.5}', "wrong_type", "count"),
        ('{"type":"step","id":"a","count":true}', "wrong_type", "count"),
        ('{"type":"step","id":"a","count":"512"}', "wrong_type", "count"),
        ('{"type":"step","id":"a","count":null}', "wrong_type", "count"),
        ('{"type":"step","id":"a","count":9223372036854775808}', "out_of_range", "count"),
        ('{"type":"step","id":"a","count":NaN}', "non_finite", "count"),
        ('{"type":"update","id":"a","parameters":{"s":true}}', "wrong_type", "parameters.s"),
        ('{"type":"update","id":"a","parameters":{"s":1e300}}', "out_of_range", "parameters.s"),
        ('{"type":"push_action","id":"a","action":{"m":null}}', "wrong_type", "action.m"),
        ('{"type":"push_action","id":"a","action":{}}', "out_of_range", "action"),
        ('{"type":"push_action","id":"a","action":{"b b":1}}', "out_of_range", "action.b b"),
        ('{"type":"push_text","id":"a","text":["x"]}', "wrong_type", "text"),
        ('{"type":"push_text","id":"a"}', "missing", "text"),
        ('{"type":"push_text","id":"a","text":"","mode":"x"}', "out_of_range", "mode"),
        ('{"type":"pause","id":"a","now":1}', "unknown_field", "now"),
        ('{"type":"nope","id":"a"}', "unknown_command", "type"),
        ('{"id":"a"}', "missing", "type"),
        ('{"type":"reset","id":"a","seed":-1}', "out_of_range", "seed"),
    ],
)
def test_a_wrong_field_is_named_with_the_command(message: str, code: str, field: str) -> None:
    error = refusal(message)
    assert (error.code, error.field, error.command) == (code, field, "a")


@pytest.mark.parametrize("id_text", ['""', '"a b"', "7", "null", '"%s"' % ("x" * 65)])
def test_a_wrong_id_is_refused_as_the_field_id(id_text: str) -> None:
    assert refusal(f'{{"type":"pause","id":{id_text}}}').field == "id"


def test_a_clients_binary_frame_is_refused() -> None:
    assert refusal(b'{"type":"pause","id":"a"}').code == "binary_frame"


@pytest.mark.parametrize(
    "message", ["", "{}", b"", b"\x00\x00", b"\xff\xff\xff\xff", b"\x00\x00\x00\x02{}"]
)
def test_a_client_refuses_what_is_no_event(message: str | bytes) -> None:
    with pytest.raises(BadMessageError):
        decode_event(message)


def test_an_error_event_carries_all_of_a_refusal() -> None:
    event = error_event(refusal('{"type":"step","id":"a","count":0}').refusal)
    assert (event.code, event.field, event.command) == ("out_of_range", "count", "a")


def test_reasons_have_their_close_codes() -> None:
    assert close_code("shutdown") is CloseCode.SHUTDOWN
    assert close_code("replaced") is CloseCode.REPLACED
    assert close_code("closed") is CloseCode.OVER
