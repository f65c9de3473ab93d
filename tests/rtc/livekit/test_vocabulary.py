"""What the names of a room's world are, the documentation says in full."""

import inspect
from dataclasses import fields
from pathlib import Path

from livekit.plugins.reverie_world import WorldSession

from reverie.rtc.livekit import vocabulary
from reverie.rtc.livekit.status import Status

DOCS = (Path(__file__).parents[3] / "docs" / "livekit.md").read_text(encoding="utf-8")


def test_every_topic_and_method_is_told() -> None:
    names = [
        value
        for name, value in vars(vocabulary).items()
        if name.startswith(("TOPIC_", "RPC_")) and isinstance(value, str)
    ]
    assert len(names) > 12
    assert [name for name in names if f"`{name}`" not in DOCS] == []


def test_every_attribute_is_told() -> None:
    names = [f"`{vocabulary.ATTRIBUTE}{each.name}`" for each in fields(Status)]
    assert [name for name in names if name not in DOCS] == []


def test_every_option_of_the_plugin_is_told() -> None:
    names = list(inspect.signature(WorldSession).parameters)
    assert "prompt" in names
    assert [name for name in names if f"`{name}`" not in DOCS] == []
