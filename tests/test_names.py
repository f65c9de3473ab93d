"""Names of modules and classes are the field's words, and each public name has one meaning."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (
    "bench", "commands", "engine", "evaluation", "gpu_pool", "kernels", "media", "models",
    "plugins", "rtc", "sessions", "web_client",
)  # fmt: skip
MODULES = sorted(
    path.relative_to(ROOT)
    for package in PACKAGES
    for suffix in ("py", "js")
    for path in (ROOT / package).rglob(f"*.{suffix}")
    if not {"build", "node_modules"} & set(path.parts)
)

RETIRED = frozenset(
    {
        "attendance", "audience", "carriage", "crew", "cutter", "desk", "dials", "doorway",
        "ears", "easel", "film", "guests", "helm", "house", "hush", "levers", "luck", "making",
        "manners", "news", "occupant", "outlet", "presence", "remembered", "resident",
        "residents", "roster", "seat", "sights", "stage", "steering", "talk", "tape", "theatre",
        "travel", "veil", "verdict", "vigil", "visit", "wish", "wishes",
    }
)  # fmt: skip
"""Metaphors that were replaced by the field's words."""
RETIRED_MODULES = RETIRED | {"door", "floor"}
"""Also for modules; in a class's name these two can be geometry."""
RETIRED_IN_RTC = RETIRED_MODULES | {"edge", "intake"}
"""Elsewhere an edge is a key's, or a picture's."""

MOST_MODULES = 25
"""In one folder."""

WIRE_FORM = "wire form"
"""What the docstring of one of two classes of one name says."""


def words(name: str) -> set[str]:
    """Split a name in snake_case or CamelCase into words in lower case."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def classes() -> Iterator[tuple[Path, ast.ClassDef]]:
    """Yield every class of every Python module."""
    for path in MODULES:
        if path.suffix == ".py":
            for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    yield path, node


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("front_desk", {"front", "desk"}),
        ("PromptDesk", {"prompt", "desk"}),
        ("_StillWish", {"still", "wish"}),
        ("RTCHouse2", {"rtc", "house"}),
        ("stage3", {"stage"}),
        ("backstage", {"backstage"}),
    ],
)
def test_names_are_split_into_words(name: str, expected: set[str]) -> None:
    assert words(name) == expected


def test_no_module_has_a_retired_name() -> None:
    assert len(MODULES) > 300
    found = [
        f"{path}: {', '.join(sorted(retired))}"
        for path in MODULES
        if (
            retired := words(path.stem)
            & (RETIRED_IN_RTC if path.parts[0] == "rtc" else RETIRED_MODULES)
        )
    ]
    assert found == []


def test_no_class_has_a_retired_name() -> None:
    found = [f"{path}: {node.name}" for path, node in classes() if words(node.name) & RETIRED]
    assert found == []


def test_no_public_class_name_stands_in_two_packages_unless_one_is_the_wire_form() -> None:
    homes: dict[str, dict[str, str]] = defaultdict(dict)
    for path, node in classes():
        if not node.name.startswith("_"):
            text = " ".join((ast.get_docstring(node) or "").split())
            homes[node.name][path.parts[0]] = homes[node.name].get(path.parts[0], "") + text
    assert len(homes) > 500
    twice = {
        name: sorted(texts)
        for name, texts in homes.items()
        if len(texts) > 1 and not any(WIRE_FORM in text for text in texts.values())
    }
    assert twice == {}


def test_no_folder_has_too_many_modules() -> None:
    counts = Counter(str(path.parent) for path in MODULES if path.name != "__init__.py")
    large = {name: count for name, count in counts.items() if count > MOST_MODULES}
    assert large == {}
