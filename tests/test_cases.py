"""The page of hard cases names tests that there are."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CASES = (TESTS / "CASES.md").read_text(encoding="utf-8")
HELD = (
    *range(4, 9), *range(11, 14), *range(15, 18), 19, 20, 23, *range(25, 30), 31, 36, 37, 38, 40, 42
)  # fmt: skip
"""Those of the first table; other tables hold others, and some of these once more."""
SUITES = {
    "C": "support/suites/case_suite.py",
    "S": "support/suites/session_suite.py",
    "T": "support/suites/text_suite.py",
    "W": "rtc/webrtc/test_peer.py",
    "M": "rtc/webrtc/test_peer_media.py",
    "P": "rtc/webrtc/test_peer_paths.py",
    "I": "support/suites/media_suite.py",
}
WORD = re.compile(rf"(?:\b([{''.join(SUITES)}]) |; |, |^|\s|\()`([^`]+)`")


def rows() -> Iterator[tuple[str, str, list[str]]]:
    """Yield each case's section and number, and its cells that name tests."""
    section = ""
    for line in CASES.splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        if re.match(r"\| [A-Z]\d+ ", line):
            name, _, *cells = line.strip("| ").split(" | ")
            yield section, name, cells


def names(cell: str) -> Iterator[tuple[str, str]]:
    """Yield file and name of each test in a cell; an unfinished name has dots."""
    file = ""
    for suite, word in WORD.findall(cell):
        if word.endswith("/"):
            continue  # a whole room
        named, _, test = word.partition("::")
        if named.endswith((".py", ".mjs")):
            file, name = named, test
        else:
            file, name = SUITES.get(suite, file), test or named
        yield file, name.partition("[")[0]


def files(named: str) -> list[Path]:
    """Return the files of that name, which may leave out its room."""
    return [*TESTS.glob(named), *TESTS.glob(f"**/{named}")]


def test_every_case_has_its_row() -> None:
    first = [name for section, name, _ in rows() if not section]
    assert first == [f"C{number:02}" for number in HELD]


@pytest.mark.parametrize(
    ("section", "case", "cells"), list(rows()), ids=[f"{row[0]} {row[1]}".strip() for row in rows()]
)
def test_every_test_that_is_named_is_there(section: str, case: str, cells: list[str]) -> None:
    found = [name for cell in cells for name in names(cell)]
    assert len(found) >= (1 if section else 2)
    for file, name in found:
        texts = [path.read_text(encoding="utf-8") for path in files(file)]
        assert texts, f"{case}: {file}"
        pattern = ".*".join(map(re.escape, name.split("…")))
        assert any(re.search(pattern, text) for text in texts), f"{case}: {file}::{name}"
