"""What a packet of inputs may hold, and how everything else is refused by name."""

import json
from typing import Any

import pytest

from reverie.rtc.livekit.errors import InputRefusedError
from reverie.rtc.livekit.inputs import RoomAxesInput, RoomKeyInput, RoomReleaseInput, parse_inputs


def packet(value: Any) -> bytes:
    return json.dumps(value).encode()


def test_one_input_or_several_come_in_a_packet() -> None:
    press = {"key": "left", "edge": "press", "tag": "k1"}
    assert parse_inputs(packet(press), reliable=True) == [
        RoomKeyInput(key="left", edge="press", tag="k1")
    ]
    both = [press, {"axes": {"look": 1}}, {"release_all": True}]
    assert parse_inputs(packet(both), reliable=True) == [
        RoomKeyInput(key="left", edge="press", tag="k1"),
        RoomAxesInput(axes={"look": 1.0}),
        RoomReleaseInput(release_all=True),
    ]
    assert parse_inputs(b"[]", reliable=True) == []


def test_only_axes_come_by_the_lossy_channel() -> None:
    moves = packet({"axes": {"look": 0.5}, "seq": 3})
    assert parse_inputs(moves, reliable=False) == [RoomAxesInput(axes={"look": 0.5}, seq=3)]
    for edge in ({"key": "left", "edge": "release"}, {"release_all": True}):
        with pytest.raises(InputRefusedError) as refusal:
            parse_inputs(packet([{"axes": {"look": 0.5}}, edge]), reliable=False)
        assert refusal.value.code == "unreliable_edge"


@pytest.mark.parametrize(
    ("data", "code", "field"),
    [
        (b"", "not_json", "$"),
        (b"\xff", "not_utf8", "$"),
        (b"left", "not_json", "$"),
        (b'"left"', "not_an_object", "$"),
        (b"[1]", "not_an_object", "$"),
        (b'{"axes": {"look": NaN}}', "non_finite", "axes.look"),
        (b'{"key": "a", "key": "b"}', "duplicate_key", "key"),
        (b"{}", "missing", "$"),
        (b'{"edge": "press"}', "missing", "$"),
        (b'{"key": 3}', "wrong_type", "key"),
        (b'{"key": ""}', "out_of_range", "key"),
        (b'{"key": "left", "edge": "hold"}', "out_of_range", "edge"),
        (b'{"key": "left", "color": 1}', "unknown_field", "color"),
        (b'{"key": "left", "tag": "' + b"x" * 65 + b'"}', "too_long", "tag"),
        (b'{"axes": {}}', "out_of_range", "axes"),
        (b'{"axes": {"look": "left"}}', "wrong_type", "axes.look"),
        (b'{"axes": {"look": 1e10}}', "out_of_range", "axes.look"),
        (b'{"axes": {"look": 1}, "seq": -1}', "out_of_range", "seq"),
        (b'{"release_all": false}', "out_of_range", "release_all"),
    ],
)
def test_what_is_wrong_is_named(data: bytes, code: str, field: str) -> None:
    with pytest.raises(InputRefusedError) as refusal:
        parse_inputs(data, reliable=True)
    assert (refusal.value.code, refusal.value.field) == (code, field)


def test_packets_are_bounded() -> None:
    with pytest.raises(InputRefusedError, match="at most 64"):
        parse_inputs(packet([{"key": "left"}] * 65), reliable=True)
    with pytest.raises(InputRefusedError) as refusal:
        parse_inputs(b" " * 20_000, reliable=True)
    assert refusal.value.code == "too_large"
