"""Tests of a folder in a process of their own: native code that ends badly ends no other test.

The folder's `conftest.py` calls `run_apart` from `pytest_collection_modifyitems`, `tell` from
`pytest_runtest_logreport`. The tests are then run by a second pytest, which the first starts when
it comes to them; what becomes of each is told over a pipe, line by line, and is shown as if it had
happened here. What that process does after its last test is of no interest.

With `REVERIE_TESTS_APART=no` they run in this process after all, for a debugger.
"""

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

SILENCE_LIMIT_S = 400.0
"""How long nothing may be heard; each test has a shorter limit in its own process."""

_PIPE = "REVERIE_TESTS_PIPE"
_APART = "REVERIE_TESTS_APART"
_LOG_TAIL = 6000


def run_apart(config: pytest.Config, items: list[pytest.Item], folder: Path) -> None:
    """Replace the tests of a folder by ones that wait for a process of their own."""
    if _PIPE in os.environ or os.environ.get(_APART) == "no":
        return
    inside = [item for item in items if folder in item.path.parents]
    if inside and not config.option.collectonly:
        process = _OwnProcess([item.nodeid for item in inside], config.rootpath)
        config.add_cleanup(process.clean)
        for item in inside:
            items[items.index(item)] = _Relayed.of(item, process)


def tell(report: pytest.TestReport) -> None:
    """In the process of their own: say what became of a test's part."""
    if _PIPE in os.environ:
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
        said = [report.nodeid, report.when, report.outcome, text]
        os.write(int(os.environ[_PIPE]), (json.dumps(said) + "\n").encode())


class _FailedApartError(Exception):
    """A test failed in its own process; holds what is to be shown."""


class _Relayed(pytest.Item):
    """Takes the place of a test that runs in another process."""

    _process: "_OwnProcess"
    _original: pytest.Item

    @classmethod
    def of(cls, original: pytest.Item, process: "_OwnProcess") -> "_Relayed":
        assert original.parent is not None, "a test is in a module"
        found: _Relayed = cls.from_parent(original.parent, name=original.name)
        found._process, found._original = process, original
        found.own_markers = [*original.own_markers, pytest.mark.timeout(0).mark]
        return found

    def runtest(self) -> None:
        outcome, text = self._process.outcome(self.nodeid)
        if outcome == "skipped":
            pytest.skip(text.removeprefix("Skipped: "))
        if outcome == "failed":
            raise _FailedApartError(text)

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None
    ) -> str:
        del style
        return str(excinfo.value)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        return self._original.reportinfo()


class _OwnProcess:
    """A pytest that runs some tests, started when the first of them is asked for."""

    def __init__(self, tests: Sequence[str], root: Path) -> None:
        self._tests, self._root = tests, root
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="reverie-tests-")
        self._log = Path(self._folder.name) / "log"
        self._pipe = -1
        self._unread = b""
        self._failed: dict[str, tuple[str, str]] = {}
        self._ended: set[str] = set()

    def outcome(self, test: str) -> tuple[str, str]:
        """Wait for a test; return its outcome and what there is to say of it."""
        if self._process is None:
            self._start()
        until = time.monotonic() + SILENCE_LIMIT_S
        while test not in self._ended:
            if not select.select([self._pipe], [], [], max(0.0, until - time.monotonic()))[0]:
                self.stop()
                return "failed", f"nothing was heard for {SILENCE_LIMIT_S:g} s\n{self._tail()}"
            if not (read := os.read(self._pipe, 1 << 16)):
                code = self._process.wait() if self._process is not None else None
                return "failed", f"the tests' process ended early, code {code}\n{self._tail()}"
            self._take(read)
            until = time.monotonic() + SILENCE_LIMIT_S
        return self._failed.get(test, ("passed", ""))

    def stop(self) -> None:
        """End it, whatever it is at."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def clean(self) -> None:
        """End it, and remove what it wrote."""
        self.stop()
        self._folder.cleanup()

    def _start(self) -> None:
        self._pipe, far = os.pipe()
        options = ["-p", "no:cacheprovider", "-o", "faulthandler_exit_on_timeout=false"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pytest", *options, *self._tests],
                cwd=self._root,
                env={**os.environ, _PIPE: str(far)},
                pass_fds=[far],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        os.close(far)

    def _take(self, read: bytes) -> None:
        *lines, self._unread = (self._unread + read).split(b"\n")
        for line in lines:
            test, when, outcome, text = json.loads(line)
            if outcome != "passed" and self._failed.get(test, ("", ""))[0] != "failed":
                self._failed[test] = (outcome, text)
            if when == "teardown":
                self._ended.add(test)

    def _tail(self) -> str:
        return self._log.read_text(errors="replace")[-_LOG_TAIL:]
