"""The first message of a socket."""

import json

import pytest

from reverie.rtc.websocket.handshake import parse_hello
from reverie.rtc.wire.errors import BadHelloError

GOOD: dict[str, object] = {
    "type": "hello",
    "protocol": 1,
    "token": "abc-DEF_1",
    "role": "viewer",
    "codecs": ["jpeg"],
    "id": "h1",
}


def test_a_hello_names_token_role_and_codecs() -> None:
    hello = parse_hello(json.dumps(GOOD))
    assert (hello.token, hello.role, hello.codecs) == ("abc-DEF_1", "viewer", ["jpeg"])


def test_a_short_hello_drives_in_any_codec() -> None:
    hello = parse_hello('{"type":"hello","protocol":1,"token":"t"}')
    assert (hello.role, hello.codecs) == ("driver", ["h264", "jpeg"])


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        ({"type": "pause"}, "hello_expected", "type"),
        ({"protocol": 2}, "unsupported_protocol", "protocol"),
        ({"protocol": True}, "wrong_type", "protocol"),
        ({"protocol": "1"}, "wrong_type", "protocol"),
        ({"token": ""}, "out_of_range", "token"),
        ({"token": "a b"}, "out_of_range", "token"),
        ({"token": None}, "wrong_type", "token"),
        ({"role": "owner"}, "out_of_range", "role"),
        ({"codecs": []}, "out_of_range", "codecs"),
        ({"codecs": ["vp8"]}, "out_of_range", "codecs"),
        ({"extra": 1}, "unknown_field", "extra"),
    ],
)
def test_a_wrong_hello_names_the_field(change: dict[str, object], code: str, field: str) -> None:
    with pytest.raises(BadHelloError) as caught:
        parse_hello(json.dumps(GOOD | change))
    assert (caught.value.code, caught.value.field) == (code, field)
    assert caught.value.command == "h1"


@pytest.mark.parametrize("message", [b"{}", "", "[]", "NaN"])
def test_what_is_no_hello_at_all_is_refused_too(message: str | bytes) -> None:
    with pytest.raises(BadHelloError):
        parse_hello(message)


def test_bytes_in_place_of_a_hello_are_told_what_comes_first() -> None:
    with pytest.raises(BadHelloError, match="the first message must be a hello") as caught:
        parse_hello(b"{}")
    assert caught.value.code == "binary_frame"
