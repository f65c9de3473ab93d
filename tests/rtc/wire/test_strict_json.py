"""C17: what Python's parser lets through, and the protocol does not."""

import pytest

from reverie.rtc.wire.errors import BadMessageError
from reverie.rtc.wire.strict_json import parse_object


def refusal(data: str | bytes) -> BadMessageError:
    with pytest.raises(BadMessageError) as caught:
        parse_object(data)
    return caught.value


def test_an_object_comes_back_as_it_is() -> None:
    text = '{"id":"a","n":-1.5,"deep":{"list":[1,true,null,"\\u00e9"]}}'
    assert parse_object(text) == {
        "id": "a",
        "n": -1.5,
        "deep": {"list": [1, True, None, "\u00e9"]},
    }


@pytest.mark.parametrize(
    ("text", "code", "field"),
    [
        ('{"id":"a","seed":NaN}', "non_finite", "seed"),
        ('{"id":"a","seed":-Infinity}', "non_finite", "seed"),
        ('{"id":"a","parameters":{"speed":1e400}}', "non_finite", "parameters.speed"),
        ('{"id":"a","seed":%s}' % ("1" * 5000), "out_of_range", "seed"),
        ('{"id":"a","seed":-%s}' % ("9" * 21), "out_of_range", "seed"),
        ('{"id":"a","seed":1,"seed":2}', "duplicate_key", "seed"),
        ('{"id":"a","action":{"move":"l","move":"r"}}', "duplicate_key", "action.move"),
        ('{"id":"a","text":"\\ud83d"}', "bad_text", "text"),
        ('{"id":"a","\\ud83d":1}', "bad_text", "\\ud83d"),
        ('{"id":"a","list":[0,{"x":NaN}]}', "non_finite", "list[1].x"),
        ('{{"id":"a","list":[{}]}}'.format(",".join("0" * 10_001)), "too_many_values", "list"),
    ],
)
def test_an_oddity_names_its_field_and_the_command(text: str, code: str, field: str) -> None:
    error = refusal(text)
    assert (error.code, error.field, error.command) == (code, field, "a")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ("[1]", "not_an_object"),
        ("3", "not_an_object"),
        ("null", "not_an_object"),
        ("NaN", "not_an_object"),
        ("", "not_json"),
        ("{", "not_json"),
        ("{'a':1}", "not_json"),
        ('{"a":01}', "not_json"),
        ("\ufeff{}", "byte_order_mark"),
        (b"\xef\xbb\xbf{}", "byte_order_mark"),
        (b"\xff\xfe{}", "not_utf8"),
        ("\udcff\udcfe{}", "not_utf8"),
        ('{"a":"\ud83d"}', "not_utf8"),
        ("[" * 100_000, "too_deep"),
        ('{"a":' * 100_000, "too_deep"),
    ],
)
def test_what_is_no_object_is_refused_as_a_whole(data: str | bytes, code: str) -> None:
    error = refusal(data)
    assert error.code == code
    assert error.field in ("$", "a")


def test_a_deep_nest_inside_a_field_names_the_field() -> None:
    text = '{"type":"step","id":"a","count":' + "[" * 100_000
    assert refusal(text).field == "count"
    assert refusal(text).command == "a"


@pytest.mark.parametrize(
    ("before", "command"),
    [
        ('"id":"a",', "a"),
        ('"type":"x", "n":-1.5e3,"t":true, "id" : "a" ,', "a"),
        ('"text":"\\"id\\"","id":"a",', None),
        ('"of":{"id":"a"},', None),
        ('"id":"\u00e9",', None),
        ('"id":7,', None),
        ("", None),
    ],
)
def test_what_is_too_deep_to_be_parsed_names_the_command_where_its_id_can_be_read(
    before: str, command: str | None
) -> None:
    assert refusal("{" + before + '"count":' + "[" * 100_000).command == command


def test_a_shallower_nest_is_refused_by_the_walk() -> None:
    error = refusal('{{"id":"a","seed":{}1{}}}'.format("[" * 100, "]" * 100))
    assert (error.code, error.command) == ("too_deep", "a")
    assert error.field is not None
    assert error.field.startswith("seed[0][0]")


def test_the_refusal_of_a_long_number_does_not_repeat_it() -> None:
    assert len(refusal('{"seed":%s}' % ("1" * 5000)).message) < 100
    assert len(refusal('{"seed":1%se400}' % ("1" * 5000)).message) < 100
