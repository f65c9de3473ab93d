"""What docs/models.md says is held to public numbers is held by a test, and recorded from there."""

import json
import re
from pathlib import Path

import pytest
from safetensors import safe_open

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
TESTS = sorted(set(re.findall(r"\| (tests/[\w/]+\.py(?:::\w+)?) \|", PAGE)))
RECORDINGS = sorted((ROOT / "tests" / "goldens").rglob("*.safetensors"))


def origin(recording: Path) -> tuple[str, str] | None:
    """Return repository and commit of a recording, if it says them."""
    with safe_open(recording, "pt") as file:
        held = (file.metadata() or {}).get("meta")
    meta = json.loads(held) if held else {}
    return (meta["repository"], meta["commit"]) if "repository" in meta else None


@pytest.mark.parametrize("named", TESTS)
def test_each_test_that_is_named_is_there(named: str) -> None:
    path, _, name = named.partition("::")
    kind = "def" if name.startswith("test_") else "class"
    pattern = rf"^{kind} {name}\b" if name else r"^\s*(async )?def test_"
    assert re.search(pattern, (ROOT / path).read_text(encoding="utf-8"), flags=re.MULTILINE)


def test_the_page_names_tests_for_each_family_that_is_compared() -> None:
    families = {named.split("/")[2] for named in TESTS}
    assert {"wan", "causal_lm"} <= families


@pytest.mark.parametrize(
    "recording", RECORDINGS, ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_where_a_recording_comes_from_is_on_the_page(recording: Path) -> None:
    if (found := origin(recording)) is None:
        return  # older ones do not say it; they were compared with the code that the page names
    repository, commit = found
    name = repository.rstrip("/").partition("github.com/")[2]
    assert f"{name} {commit[:7]}" in PAGE


def test_most_recordings_say_where_they_come_from() -> None:
    assert sum(origin(recording) is not None for recording in RECORDINGS) >= 12
