"""Odd commands: each is one typed error that names its field."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.sessions.protocol.commands import PushAction, Update
from reverie.sessions.protocol.errors import BadRequestError, CommandError
from reverie.sessions.protocol.parsing import check_opening, parse_command

NAN, INF = float("nan"), float("inf")


def refused(**given: object) -> CommandError:
    with pytest.raises(CommandError) as caught:
        parse_command(given)
    return caught.value


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (NAN, "non_finite"),
        (INF, "non_finite"),
        (-INF, "non_finite"),
        (1e300, "out_of_range"),
        (10**400, "out_of_range"),
        (True, "wrong_type"),
        (None, "wrong_type"),
        ([], "wrong_type"),
        ({}, "wrong_type"),
        ("x" * 65, "too_long"),
        ("", "out_of_range"),
    ],
)
def test_an_odd_action_is_refused_at_its_field(value: object, code: str) -> None:
    error = refused(type="push_action", id="1", action={"move": value})
    assert (error.field, error.command) == ("action.move", "1")
    assert error.code == code


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (NAN, "non_finite"),
        (INF, "non_finite"),
        (2.0**63, "out_of_range"),
        (10**400, "out_of_range"),
        (True, "wrong_type"),
        ("512", "wrong_type"),
        (None, "wrong_type"),
    ],
)
def test_an_odd_parameter_is_refused_at_its_field(value: object, code: str) -> None:
    error = refused(type="update", id="1", parameters={"speed": value})
    assert (error.field, error.code) == ("parameters.speed", code)


@pytest.mark.parametrize("value", [-1, 1.5, True, "5", None, 2**63, NAN, 10**400])
@pytest.mark.parametrize(
    ("type", "field"), [("rewind", "chunk"), ("step", "count"), ("playhead", "pts_us")]
)
def test_an_odd_count_is_refused_at_its_field(type: str, field: str, value: object) -> None:
    given = {"type": type, "id": "1", field: value}
    if type == "playhead":
        given["chunk"] = 0
    error = refused(**given)
    assert error.field == field
    assert len(error.message) < 300


@pytest.mark.parametrize(
    ("given", "field", "code"),
    [
        ({"type": "push_text", "id": "1"}, "text", "missing"),
        ({"type": "push_text", "id": "1", "text": None}, "text", "wrong_type"),
        ({"type": "push_text", "id": "1", "text": ["a"]}, "text", "wrong_type"),
        ({"type": "push_text", "id": "1", "text": "\ud83d"}, "text", "bad_text"),
        ({"type": "push_text", "id": "1", "text": "x" * 1_000_001}, "text", "too_long"),
        ({"type": "push_text", "id": "1", "text": "a", "mode": "x"}, "mode", "out_of_range"),
        ({"type": "push_text", "id": "1", "text": "a", "more": 1}, "more", "unknown_field"),
        ({"type": "pause"}, "id", "missing"),
        ({"type": "pause", "id": "a b"}, "id", "out_of_range"),
        ({"type": "pause", "id": 5}, "id", "wrong_type"),
        ({"type": "dance", "id": "1"}, "type", "unknown_command"),
        ({"id": "1"}, "type", "missing"),
        ({"type": 5, "id": "1"}, "type", "unknown_command"),
        ({"type": "push_action", "id": "1", "action": {}}, "action", "out_of_range"),
        ({"type": "push_action", "id": "1", "action": {"a b": "x"}}, "action.a b", "out_of_range"),
        ({"type": "push_action", "id": "1", "action": "left"}, "action", "wrong_type"),
        ({"type": "reset", "id": "1", "seed": 2**53}, "seed", "out_of_range"),
        ({"type": "update", "id": "1", "reset": 1}, "reset", "wrong_type"),
    ],
)
def test_the_first_wrong_field_is_named(given: dict[str, object], field: str, code: str) -> None:
    error = refused(**given)
    assert (error.field, error.code) == (field, code)


def test_keys_and_amounts_are_both_taken() -> None:
    command = parse_command(
        {"type": "push_action", "id": "1", "action": {"move": "left", "look": 1}}
    )
    assert isinstance(command, PushAction)
    assert command.action == {"move": "left", "look": 1}


def test_prompt_and_reset_come_in_one_update() -> None:
    command = parse_command({"type": "update", "id": "1", "prompt": "b", "reset": True})
    assert isinstance(command, Update)
    assert (command.prompt, command.reset) == ("b", True)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.sampled_from(["push_text", "push_action", "update", "rewind", "step", "playhead", "x"]),
    st.dictionaries(
        st.sampled_from(["id", "text", "mode", "action", "edge", "parameters", "chunk", "count"]),
        JSON,
    ),
)
@settings(deadline=None)
def test_anything_at_all_is_a_command_or_one_error_with_a_field(
    type: str, fields: dict[str, object]
) -> None:
    with contextlib.suppress(CommandError):
        parse_command({"type": type, **fields})
        return
    error = refused(type=type, **fields)
    assert error.field
    assert error.field.isascii()
    assert error.code


def test_a_number_of_5000_digits_is_refused_like_any_other() -> None:
    assert refused(type="rewind", id="1", chunk=10**5000).field == "chunk"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"type": "step", "count": 0}, "count is at least 1"),
        ({"type": "step", "count": 1.5}, "count is a whole number, not 1.5"),
        ({"type": "step", "count": 2**70}, "count is too large a number"),
        ({"type": "push_text"}, "text is missing"),
        ({"type": "push_text", "text": None}, "text is a text, not null"),
        (
            {"type": "push_text", "text": "", "mode": "x"},
            "mode is one of 'replace', 'append' or 'turn'",
        ),
        ({"type": "push_action", "action": {}}, "action holds at least 1 entry"),
        (
            {"type": "push_action", "action": {"move": True}},
            "action.move is a text or a number, not True",
        ),
        (
            {"type": "push_action", "action": {"a b": "x"}},
            "action.a b is made of letters, digits and _ . -",
        ),
        ({"type": "update", "parameters": {"speed": NAN}}, "parameters.speed is a finite number"),
        ({"type": "pause", "now": 1}, "there is no field 'now' here; known: id, type"),
    ],
)
def test_an_error_says_in_words_of_the_protocol_what_the_field_may_be(
    given: dict[str, object], message: str
) -> None:
    assert refused(id="1", **given).message == message


def test_a_command_that_is_none_is_told_the_commands_there_are() -> None:
    for said in ({}, {"type": "dance"}, {"type": None}):
        message = refused(id="1", **said).message
        assert message.startswith("type is")
        assert "push_text" in message
        assert "request_key_frame" in message
        assert not {"tag", "discriminator", "Input"} & set(message.split())


def test_what_opens_a_session_is_refused_under_its_own_name() -> None:
    with pytest.raises(BadRequestError, match="prompt is a text, not 5"):
        check_opening(5, None, {})
