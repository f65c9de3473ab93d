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
SUITES = {"C": "support/case_suite.py", "S": "support/session_suite.py"}


def rows() -> Iterator[tuple[str, list[str]]]:
    """Yield each case's number and its cells that name tests."""
    for line in CASES.splitlines():
        if re.match(r"\| C\d\d ", line):
            name, _, *cells = line.strip("| ").split(" | ")
            yield name, cells


def names(cell: str) -> Iterator[tuple[str, str]]:
    """Yield file and name of each test in a cell; an unfinished name has dots."""
    file = ""
    for suite, word in re.findall(r"(?:\b([CS]) |; |, |^|\s|\()`([^`]+)`", cell):
        named, _, test = word.partition("::")
        if named.endswith((".py", ".mjs")):
            file, name = named, test
        else:
            file, name = SUITES.get(suite, file), test or named
        yield file, name.partition("[")[0]


def files(named: str) -> list[Path]:
    """Return the files of that name, which may leave out its room."""
    return [*TESTS.glob(named), *TESTS.glob(f"*/{named}")]


def test_every_case_has_its_row() -> None:
    assert [name for name, _ in rows()] == [f"C{number:02}" for number in HELD]


@pytest.mark.parametrize(("case", "cells"), list(rows()), ids=[name for name, _ in rows()])
def test_every_test_that_is_named_is_there(case: str, cells: list[str]) -> None:
    found = [name for cell in cells for name in names(cell)]
    assert len(found) >= 2
    for file, name in found:
        texts = [path.read_text(encoding="utf-8") for path in files(file)]
        assert texts, f"{case}: {file}"
        pattern = ".*".join(map(re.escape, name.split("…")))
        assert any(re.search(pattern, text) for text in texts), f"{case}: {file}::{name}"
