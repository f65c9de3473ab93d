"""The runtime packages have no branch for a model family."""

import ast
import re
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("engine", "gpu_pool", "sessions", "media", "rtc")
FAMILIES = sorted(entry.name for entry in entry_points(group="reverie.models"))


def words(path: Path) -> Iterator[tuple[int, str]]:
    """Yield every name and text of a module with its line; what documentation says is left out."""
    tree = ast.parse(path.read_text())
    said = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.lineno, node.value
        elif isinstance(node, ast.Name):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute):
            yield node.lineno, node.attr


def mentions(family: str) -> list[str]:
    """Return where the rooms name a family as a word of its own."""
    word = re.compile(rf"\b{re.escape(family)}\b", re.IGNORECASE)
    return [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for room in ROOMS
        for path in sorted((ROOT / room).glob("**/*.py"))
        for line, text in words(path)
        if word.search(text)
    ]


def test_there_are_families_to_look_for() -> None:
    assert {"pocket", "wan", "causal_lm", "diamond", "oasis"} <= set(FAMILIES)


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "echo"])
def test_no_runtime_package_names_a_family(family: str) -> None:
    assert mentions(family) == []


def test_no_runtime_package_imports_from_a_family() -> None:
    imports = re.compile(r"reverie\.models\.(pocket|wan|causal_lm|diamond|oasis|echo)\b")
    found = [
        str(path)
        for room in ROOMS
        for path in (ROOT / room).glob("**/*.py")
        if imports.search(path.read_text())
    ]
    assert found == []
