"""The page and the server know no model by name: what it can do comes from its description.

The names are those of the embedded model and of the games; commands of the shell may name them.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from reverie.models.contract.spec import ModelSpec
from reverie.models.diamond.actions import BINDINGS as DIAMOND_KEYS
from reverie.models.oasis.config import BINDINGS as OASIS_KEYS
from reverie.models.pocket.spec import POCKET

ROOT = Path(__file__).resolve().parent.parent
SERVER = ("engine", "gpu_pool", "media", "rtc", "sessions")
PYTHON = sorted(path for package in SERVER for path in (ROOT / package).rglob("*.py"))
PAGE = sorted(
    path for kind in ("js", "html", "css") for path in (ROOT / "web_client").rglob(f"*.{kind}")
)

OF_THE_KEYBOARD = {"space", "shift"}
"""Keys that a model may call as the keyboard does."""
OF_THE_RUNTIME = {"barge_in"}
"""What the runtime calls a thing of its own as the model calls its parameter."""


def names_of(spec: ModelSpec) -> set[str]:
    """Return what a model calls itself, its parameters and its controls."""
    parts = [*spec.loops]
    return {
        spec.name,
        *(parameter.name for loop in parts for parameter in loop.parameters),
        *(control.name for loop in parts for control in loop.controls),
    }


NAMES = names_of(POCKET) | (set(DIAMOND_KEYS) | set(OASIS_KEYS)) - OF_THE_KEYBOARD


def texts_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts of a Python module that are no prose, with their lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def named(path: Path) -> list[str]:
    """Return where a file names something of a model."""
    if path.suffix == ".py":
        known = NAMES - OF_THE_RUNTIME
        return [f"{path}:{line} {text!r}" for line, text in texts_of(path) if text in known]
    quoted = re.compile(rf"""["'`.](?:{"|".join(sorted(NAMES))})["'`]|\bpocket\b|\bnarrate\b""")
    lines = path.read_text(encoding="utf-8").splitlines()
    return [
        f"{path}:{number} {line.strip()}"
        for number, line in enumerate(lines, 1)
        if quoted.search(line)
    ]


def test_there_is_something_to_look_for() -> None:
    assert {"pocket", "narrate", "barge_in", "steps", "move", "attack", "fire"} <= NAMES
    assert len(PYTHON) > 100
    assert len(PAGE) > 40


@pytest.mark.parametrize("files", [PYTHON, PAGE], ids=["server", "page"])
def test_the_page_and_the_server_know_no_model_by_name(files: list[Path]) -> None:
    assert [found for path in files for found in named(path)] == []
