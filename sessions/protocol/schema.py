"""The JSON Schema of commands and events: `python -m reverie.sessions.protocol.schema`."""

import json
from importlib.resources import files
from pathlib import Path

from pydantic import TypeAdapter

from reverie.sessions.protocol.commands import COMMAND, PROTOCOL
from reverie.sessions.protocol.events import EVENT

FILE = Path(str(files("reverie.sessions.protocol").joinpath("schema.json")))
"""Path of the schema, in the checkout and in the wheel."""


def protocol_schema() -> dict[str, object]:
    """Return the schema: `command` and `event` describe what goes in and what comes out."""
    roots, definitions = TypeAdapter.json_schemas(
        [("command", "validation", COMMAND), ("event", "serialization", EVENT)],
        ref_template="#/$defs/{model}",
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "reverie sessions",
        "protocol": PROTOCOL,
        "command": roots["command", "validation"],
        "event": roots["event", "serialization"],
        **definitions,
    }


def schema_text() -> str:
    """Return the schema as it is committed."""
    return json.dumps(protocol_schema(), indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    FILE.write_text(schema_text(), encoding="utf-8")
