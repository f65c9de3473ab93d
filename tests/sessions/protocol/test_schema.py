"""The committed schema says what the code says."""

import json

from reverie.sessions.protocol.events import EVENT
from reverie.sessions.protocol.schema import FILE, schema_text


def test_the_committed_schema_is_up_to_date() -> None:
    stale = "run: python -m reverie.sessions.protocol.schema"
    assert FILE.read_text(encoding="utf-8") == schema_text(), stale


def test_the_schema_knows_every_command_and_event_by_its_type() -> None:
    schema = json.loads(schema_text())
    assert "push_text" in schema["command"]["discriminator"]["mapping"]
    assert "media.chunk" in schema["event"]["discriminator"]["mapping"]


def test_bytes_of_media_are_no_part_of_an_event_s_json() -> None:
    schema = json.loads(schema_text())
    assert "data" not in schema["$defs"]["MediaChunk"]["properties"]


def test_an_event_comes_back_from_its_own_json() -> None:
    given = {"type": "error", "code": "too_long", "message": "m", "field": "text"}
    event = EVENT.validate_python(given)
    assert EVENT.validate_json(event.model_dump_json()) == event
