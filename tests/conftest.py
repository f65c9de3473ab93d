"""Which tests are slow, and how the tests are shared out between processes (`-n`, pytest-xdist).

A worker gets whole files, so that the fixtures of a file are made once. The tests of a folder that
has a process to itself (`support/rigs/own_process.py`) stay together, because each worker would
start that process again.
"""

from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

TESTS = Path(__file__).parent

APART = ("tests/rtc/livekit", "tests/plugins")
"""Folders whose `conftest.py` calls `run_apart`."""

SLOW = (
    "bench",
    "e2e/test_coming_back.py",
    "e2e/test_cost.py",
    "e2e/test_everybody.py",
    "e2e/test_families.py",
    "e2e/test_programs.py",
    "e2e/test_refusing_browsers.py",
    "e2e/test_webrtc.py",
    "engine/test_any_order.py",
    "evaluation/test_run.py",
    "gpu_pool/server/test_device_loss.py",
    "gpu_pool/server/test_loss.py",
    "gpu_pool/worker/test_loops_any_order.py",
    "models/pocket/training",
    "models/services/test_memory.py",
    "models/services/test_no_foreign_code.py",
    "models/wan/test_long_run.py",
    "plugins",
    "rtc/client/test_remote_cases.py",
    "rtc/livekit",
    "rtc/test_read_only.py",
    "rtc/test_shutdown.py",
    "rtc/websocket/test_over_line.py",
)
"""Long properties, training, measurements, processes that are killed, and whole tours of a browser
or a LiveKit room: `make check` runs them, `make test` leaves them out (marker `slow`)."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    slow = [TESTS / name for name in SLOW]
    for item in items:
        if any(item.path.is_relative_to(each) for each in slow):
            item.add_marker(pytest.mark.slow)


class ByFile(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives each worker whole files, those with the most tests first."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((folder for folder in APART if file.startswith(folder)), file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling:
    """Share out by file."""
    return ByFile(config, log)
